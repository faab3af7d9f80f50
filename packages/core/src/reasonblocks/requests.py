"""Defines the engine's requests: it yields one and is sent the answer.

`Unavailable`, thrown in at the yield, means that a backend could not answer. Any other error ends the step as a fault.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from .types import (
    Account,
    ETrace,
    Evaluation,
    FSMState,
    Injected,
    Injection,
    Memories,
    Note,
    Observed,
    Patience,
    Step,
    StepDecision,
    Tier,
    TraceState,
)
from .util.memo import Memo

T = TypeVar("T")


class Request(Generic[T]):
    """One question of the engine; `T` is the type of its answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Request[float]):
    """Asks the caller's scorer for the difficulty of a step, 0..1."""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance(Request[FSMState]):
    """Asks the caller's transition for the next state."""

    state: FSMState
    history: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe(Request[Observed]):
    """Asks the caller's own monitors for (name, score, memory, evidence), in the order of their names."""

    step: Step
    index: int
    memories: Memories


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(Request["str | None"]):
    """Asks a caller's monitor for its text about this evidence, or None."""

    monitor: str
    evidence: tuple[int, ...]
    rung: int


class Advised(NamedTuple):
    """An advisor's answer, "" for none or a fault, the time for which it was awaited, and its tokens, if known."""

    text: str
    ms: float
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advise(Request[Advised]):
    """Asks the caller's advisor what a stuck run should try next. `step` is its newest one."""

    step: Step
    fact: str
    hint: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Request["Injection | None"]):
    """Asks the caller's `on_injection` for the injection with its final text, or for None, which drops it.

    `state` and `decision` are those before the next call, as far as they are known.
    """

    injection: Injection
    state: TraceState
    decision: StepDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Request["str | None"]):
    """Asks a condition of the caller's for the reason to end the run, or to ask a person, before the next call.

    `option` is "stop_when" or "interrupt_when"; `otherwise` is the answer if the condition fails.
    """

    option: str
    otherwise: str | None
    state: TraceState
    decision: StepDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate(Request[tuple[Evaluation, Memories]]):
    """Asks the evaluator for the evaluation of completed step `index`, and for the memories after it.

    `account` and `patience` include the step.
    """

    step: Step
    index: int
    memories: Memories
    injected: tuple[Injected, ...]
    task: str
    profile: str
    weights: dict[str, float]
    account: Account
    patience: Patience
    observed: Observed = ()
    run_id: str = ""
    notes_told: tuple[str, ...] = ()
    """Ids of the notes that the run has been told."""
    takes_notes: bool = False
    """True if the run takes notes, which an evaluator may then fetch along with its answer."""
    ends: float | None = None
    """The step's deadline on the monotonic clock, in seconds; None: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect(Request[tuple[Note, ...]]):
    """Asks for the notes that wait for a run, the oldest first; no notes if the mailbox fails."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieve(Request[tuple[ETrace, ...]]):
    """Asks the pattern store for at most `top_k` patterns of a tier, by `similarity` or the pattern's own gate."""

    tier: Tier
    texts: tuple[str, ...]
    """The texts of the newest steps, the newest last; empty for tier e3."""
    top_k: int
    similarity: float
    org_id: str
    failure_type: str | None
    model: str
    kind: str | None = None
    """The kind of the finding that the agent is told with this call: patterns for other kinds are left out."""
    words: Sequence[str] | None = None
    """The newest text's words, if the scorer has already split it."""
    memo: Memo | None = None
    """The run's own: a store keeps here what was costly to compute of these texts."""
    ends: float | None = None
    """The step's deadline on the monotonic clock, in seconds; None: none."""

    @property
    def query(self) -> str:
        """The texts joined by newlines."""
        return "\n".join(self.texts)


Flow: TypeAlias = Generator[Request[Any], Any, T]


def ask(request: Request[T]) -> Flow[T]:
    """Yield a request and return its answer, typed."""
    answer: T = yield request
    return answer
