"""A lesson that nobody has accepted yet: its pattern, what it comes from, and its form as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..exceptions import ConfigError
from ..patterns import pattern_json, pattern_of
from ..types import JSON, Pattern
from ._evidence import Evidence

__all__ = ["Proposal", "Status"]

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
        return replace(self, status=status)

    def as_json(self) -> dict[str, JSON]:
        """One line of the file of proposals."""
        told: dict[str, Any] = asdict(replace(self, pattern=Pattern(id="", tier="e1")))
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
