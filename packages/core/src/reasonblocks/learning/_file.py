"""The file of proposals: one a line, what was accepted or refused kept in it, so that nothing is proposed twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from .._write import write_whole
from ..exceptions import ConfigError
from ..text import whole
from ..types import compact
from ._proposal import Proposal

__all__ = ["read_proposals", "together", "write_proposals"]


def read_proposals(path: str | Path) -> tuple[Proposal, ...]:
    """Those of a file, in its order; none where there is no file. Raises `ConfigError` with file, line and reason."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")  # U+2028 ends no line of JSON
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("proposals", str(path), f"cannot be read: {error}") from error
    return tuple(_read(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _read(path: str | Path, number: int, line: str) -> Proposal:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}:{number}", line[:40], "is not JSON") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}:{number}", line[:40], "must be an object")
    try:
        return Proposal.of_json(value)
    except ConfigError as error:
        raise ConfigError(f"{path}:{number}", line[:40], str(error)) from error


def write_proposals(path: str | Path, proposals: Iterable[Proposal]) -> None:
    """Replace the file atomically: after an error or a crash it is the old one or the new one. Raises `OSError`."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(f"{whole(compact(one.as_json()))}\n" for one in proposals))


def together(known: Sequence[Proposal], found: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """The known and the newly found: a pending one is renewed, one that was decided stays decided."""
    decided = {one.pattern.id for one in known if one.status != "pending"}
    new = {one.pattern.id: one for one in found if one.pattern.id not in decided}
    kept = [new.pop(one.pattern.id, one) for one in known]
    return (*kept, *new.values())
