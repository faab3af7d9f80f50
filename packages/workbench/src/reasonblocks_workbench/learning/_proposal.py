"""Defines a proposed lesson, and reads and writes files of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from reasonblocks.exceptions import ConfigError
from reasonblocks.patterns import pattern_json, pattern_of
from reasonblocks.types import JSON, Pattern
from reasonblocks.util.files import create_private, make_folder, write_whole
from reasonblocks.util.json import compact
from reasonblocks.util.text import whole

from ._alternatives import Alternative
from ._distil import Evidence

Status = Literal["pending", "accepted", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A lesson with its support, and the decision about it.

    `basis` is "same task" if successful runs of the failed runs' own task show what to do, "other tasks" if runs of
    other tasks do, "kind of trouble" if none does. `run_ids` are failed runs, `learned_from` successful ones.
    """

    pattern: Pattern
    form: str
    tool: str
    error: str
    runs: int
    tasks: int
    basis: str
    run_ids: tuple[str, ...]
    learned_from: tuple[str, ...] = ()
    status: Status = "pending"

    @classmethod
    def of(cls, pattern: Pattern, evidence: Evidence) -> Proposal:
        alternative = evidence.instead
        return cls(
            pattern=pattern,
            form=evidence.kind.form,
            tool=evidence.kind.tool,
            error=evidence.kind.error,
            runs=evidence.runs,
            tasks=evidence.tasks,
            basis=_basis(alternative),
            run_ids=evidence.run_ids,
            learned_from=alternative.run_ids if alternative is not None else (),
        )

    def with_status(self, status: Status) -> Proposal:
        return replace(self, status=status)

    def as_json(self) -> dict[str, JSON]:
        """Return the object for one line of a file of proposals."""
        values: dict[str, Any] = asdict(replace(self, pattern=Pattern(id="", tier="e1")))
        values |= {"pattern": pattern_json(self.pattern), "run_ids": list(self.run_ids)}
        return {**values, "learned_from": list(self.learned_from)}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Proposal:
        """Return the proposal of such an object. Raises `ConfigError` with the field, its value and the rule."""
        try:
            values = {**given, "pattern": pattern_of(given["pattern"])}
            values |= {name: tuple(map(str, given.get(name) or ())) for name in ("run_ids", "learned_from")}
            return cls(**values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError("proposal", type(error).__name__, f"is no proposal: {error}") from error


def _basis(alternative: Alternative | None) -> str:
    if alternative is None:
        return "kind of trouble"
    return "same task" if alternative.same_task else "other tasks"


def read_proposals(path: str | os.PathLike[str]) -> tuple[Proposal, ...]:
    """Return the proposals of a file in its order; none without a file. Raises `ConfigError` with line and reason."""
    name = os.fspath(path)
    try:
        lines = (
            Path(name).read_text(encoding="utf-8").split("\n")
        )  # unlike splitlines(), keeps U+2028 inside a JSON line
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("proposals", name, f"cannot be read: {error}") from error
    return tuple(_read(name, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _read(path: str, number: int, line: str) -> Proposal:
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


def write_proposals(path: str | os.PathLike[str], proposals: Iterable[Proposal]) -> None:
    """Replace the file atomically: after an error or a crash it is the old one or the new one. Raises `OSError`.

    It quotes runs, so that a file that is created here is readable by this user only.
    """
    make_folder(Path(path).parent)
    with suppress(OSError):  # `write_whole` names the path in its error
        create_private(path)
    write_whole(path, "".join(f"{whole(compact(proposal.as_json()))}\n" for proposal in proposals))


def together(known: Sequence[Proposal], found: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Merge known and newly found proposals: a pending one is replaced by its new version, a decided one is kept."""
    decided = {proposal.pattern.id for proposal in known if proposal.status != "pending"}
    new = {proposal.pattern.id: proposal for proposal in found if proposal.pattern.id not in decided}
    kept = [new.pop(proposal.pattern.id, proposal) for proposal in known]
    return (*kept, *new.values())
