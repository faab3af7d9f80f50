"""Values about actions: their risk, one execution, and its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Grade: TypeAlias = Literal["low", "medium", "high"]
GRADES: tuple[Grade, ...] = get_args(Grade)
"""From harmless to worst."""
Amplifier: TypeAlias = Literal["external_effect", "data_loss", "cost", "fleet_wide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The risk of an action, as the catalogue states it; a proposal never does.

    `irreversibility`: how hard it is to undo. `regret`: how bad it is if it was wrong. An unstated grade is medium.
    `amplifiers` make every mistake larger.
    """

    irreversibility: Grade = "medium"
    regret: Grade = "medium"
    amplifiers: frozenset[Amplifier] = frozenset()


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of an execution. `disposition` tells how the thread goes on after a success."""

    succeeded: bool
    disposition: Literal["completed", "handed_off", "decomposed"] = "completed"
    summary: str = ""
    partial: bool = False
    code: str = ""
    """The reason of a failure in one word, such as "cancelled" or "outcome_unknown"."""
    retryable: bool = False
    to: str = ""
    """Whom the matter was handed to."""
    output: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def ok(cls, summary: str = "", *, partial: bool = False, output: Mapping[str, object] | None = None) -> Report:
        """Return the report of a success; `partial` asks for a review."""
        return cls(succeeded=True, summary=summary, partial=partial, output=output or {})

    @classmethod
    def failed(cls, summary: str, *, code: str = "failed", retryable: bool = False) -> Report:
        """Return the report of a failure; a person is asked how to go on."""
        return cls(succeeded=False, summary=summary, code=code, retryable=retryable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution of an approved action. `id` is the idempotency key: the same for every attempt.

    `is_cancelled` returns True after somebody asked for a stop; long actions ask it from time to time.
    """

    id: str
    thread_id: str
    action: str
    parameters: Mapping[str, object]
    hash: str
    """The approved hash: of action, parameters, run and the catalogue's version of the action."""
    org_id: str = "default"
    run_id: str | None = None
    started_at: float = 0.0
    deadline_at: float = 0.0
    """Seconds since the epoch."""
    cancel_requested: bool = False
    report: Report | None = None
    is_cancelled: Callable[[], bool] = field(default=_never, compare=False, repr=False)
