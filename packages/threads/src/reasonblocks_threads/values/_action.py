"""Values about actions: their risk, one execution, and its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from .json_values import Flag, Number, Plain, Words

Grade: TypeAlias = Literal["low", "medium", "high"]
GRADES: tuple[Grade, ...] = get_args(Grade)
"""The grades, from the most harmless to the worst."""
Amplifier: TypeAlias = Literal["external_effect", "data_loss", "cost", "fleet_wide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The risk of an action, as the catalogue states it; a proposal never does.

    `irreversibility` is the difficulty of undoing it, and `regret` the harm if it is wrong; both are medium by default.
    `amplifiers` make every mistake larger.
    """

    irreversibility: Grade = "medium"
    regret: Grade = "medium"
    amplifiers: frozenset[Amplifier] = frozenset()


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of an execution. After a success, `disposition` determines how the thread continues."""

    succeeded: Flag
    disposition: Literal["completed", "handed_off", "decomposed"] = "completed"
    summary: Words = ""
    partial: Flag = False
    code: Words = ""
    """The reason of a failure in one word, such as "cancelled" or "outcome_unknown"."""
    retryable: Flag = False
    to: Words = ""
    """The person, team or queue to which the matter was handed."""
    output: Plain = field(default_factory=dict)

    @classmethod
    def ok(cls, summary: str = "", *, partial: bool = False, output: Mapping[str, object] | None = None) -> Report:
        """Return the report of a success; a `partial` one is reviewed by a person."""
        return cls(succeeded=True, summary=summary, partial=partial, output=output or {})

    @classmethod
    def failed(cls, summary: str, *, code: str = "failed", retryable: bool = False) -> Report:
        """Return the report of a failure, after which a person decides how to continue."""
        return cls(succeeded=False, summary=summary, code=code, retryable=retryable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution of an approved action. `id` is the idempotency key: the same for every attempt.

    `is_cancelled` returns True once somebody has cancelled it; long actions should call it from time to time.
    """

    id: str
    thread_id: str
    action: str
    parameters: Plain
    hash: str
    """The approved hash of the action, its parameters, the run and the version of the action."""
    org_id: str = "default"
    run_id: str | None = None
    started_at: Number = 0.0
    deadline_at: Number = 0.0
    """Seconds since the epoch."""
    cancel_requested: Flag = False
    report: Report | None = None
    is_cancelled: Annotated[Callable[[], bool], Field(exclude=True)] = field(default=_never, compare=False, repr=False)
