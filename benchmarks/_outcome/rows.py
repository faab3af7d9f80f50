"""Rows: the record of each run, as JSON. All tables are made from rows alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Phase: TypeAlias = Literal["shadow", "branch", "whole"]
"""A shadow run is unsteered, its decisions computed but not shown; a branch starts at the state before a shadow run's
first text; a whole run is steered, or not, from its first call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A text that the agent was told before call `step` (the first is 0), and what was found."""

    step: int
    text: str
    monitor: str | None = None
    kind: str | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A call of the run and its result. A turn without a call has an empty name."""

    name: str
    arguments: dict[str, Any]
    output: str
    is_error: bool = False
    thought: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run. `sample` counts equal runs with another sampling seed.

    `point` is the call before which a monitor first spoke, or would have spoken in an unsteered run, None if never; a
    branch has that of its shadow run. `kind` and `monitor` are those of this first text. `winnable` says whether the
    reference policy wins from there within the steps left; None without a policy. `ended` if the agent ended the task
    by itself. Tokens are sums over the run: `prompt` as sent, `evaluated` without what the provider had in its cache
    (None if it does not say), `completion` as written.
    """

    model: str
    through: str
    phase: Phase
    family: str
    seed: int
    arm: str
    sample: int
    won: bool
    ended: bool
    steps: int
    point: int | None = None
    kind: str | None = None
    monitor: str | None = None
    winnable: bool | None = None
    prompt: int = 0
    evaluated: int | None = None
    completion: int = 0
    told: tuple[Told, ...] = ()
    calls: tuple[Made, ...] = field(default=(), repr=False)
    strong: int = 0
    """Calls that the stronger model answered."""
    error: str | None = None

    @property
    def key(self) -> tuple[str, str, str, str, int, str, int]:
        """The identity of a run: a run whose key is there already is not made again."""
        return (self.model, self.through, self.phase, self.family, self.seed, self.arm, self.sample)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of this row."""
        return asdict(self)

    @classmethod
    def of(cls, given: dict[str, Any]) -> Row:
        """Return the row of its JSON."""
        told = tuple([Told(**{**item, "sources": tuple(item["sources"])}) for item in given["told"]])
        return cls(**{**given, "told": told, "calls": tuple([Made(**item) for item in given["calls"]])})
