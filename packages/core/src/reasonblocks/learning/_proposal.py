"""A lesson that nobody has accepted yet: its pattern, what it comes from, and its form as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from .._files import write_whole
from .._json import compact, evolve
from .._patterns import pattern_json, pattern_of
from .._text import whole
from ..exceptions import ConfigError
from ..types import JSON, Pattern
from ._evidence import Evidence

Status = Literal["pending", "accepted", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """`basis`: "same task" where successful runs of the failed runs' own task show what to do, "other tasks" where
    those of others do, "kind of trouble" where none does. `run_ids` are failed runs, `learned_from` successful ones.
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
        instead = evidence.instead
        return cls(
            pattern=pattern,
            form=evidence.kind.form,
            tool=evidence.kind.tool,
            error=evidence.kind.error,
            runs=evidence.runs,
            tasks=evidence.tasks,
            basis="kind of trouble" if instead is None else "same task" if instead.same_task else "other tasks",
            run_ids=evidence.run_ids,
            learned_from=instead.run_ids if instead is not None else (),
        )

    def with_status(self, status: Status) -> Proposal:
        return evolve(self, status=status)

    def as_json(self) -> dict[str, JSON]:
        """One line of the file of proposals."""
        told: dict[str, Any] = asdict(evolve(self, pattern=Pattern(id="", tier="e1")))
        told |= {"pattern": pattern_json(self.pattern), "run_ids": list(self.run_ids)}
        return {**told, "learned_from": list(self.learned_from)}

    @classmethod
    def of_json(cls, given: Mapping[str, Any]) -> Proposal:
        """Raises `ConfigError` with the field, its value, and what holds."""
        try:
            values = {**given, "pattern": pattern_of(given["pattern"])}
            values |= {name: tuple(map(str, given.get(name) or ())) for name in ("run_ids", "learned_from")}
            return cls(**values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigError("proposal", type(error).__name__, f"is no proposal: {error}") from error


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
