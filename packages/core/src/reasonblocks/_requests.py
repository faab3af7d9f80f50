"""What the engine needs from outside, as values: it yields a request and is sent the answer.

`Unavailable` thrown in at the yield means that a backend could not answer; any other error ends the step as a fault.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ._memo import Memo
from .types import ETrace, Evaluation, FSMState, Injected, Memories, Observed, Step, Tier

T = TypeVar("T")


class Request(Generic[T]):
    """One question; `T` is the type of its answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Request[float]):
    """The caller's scorer: how hard was this step, 0..1?"""

    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance(Request[FSMState]):
    """The caller's transition: which state follows?"""

    state: FSMState
    history: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observe(Request[Observed]):
    """The caller's own monitors: (name, score, memory, evidence) of each, in the order of their names."""

    step: Step
    index: int
    memories: Memories


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(Request["str | None"]):
    """Asks a caller's own monitor for its text about this evidence; None if it has none of its own."""

    monitor: str
    evidence: tuple[int, ...]
    rung: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate(Request[tuple[Evaluation, Memories]]):
    """All monitors: the evaluation of completed step `index`, and the memories after it."""

    step: Step
    index: int
    memories: Memories
    injected: tuple[Injected, ...]
    task: str
    profile: str
    weights: dict[str, float]
    observed: Observed = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieve(Request[tuple[ETrace, ...]]):
    """The pattern store: at most `top_k` of a tier at or above `similarity`, each pattern's own gate going first."""

    tier: Tier
    texts: tuple[str, ...]
    """What happened last, a text a step, the newest last; empty for tier e3."""
    top_k: int
    similarity: float
    org_id: str
    failure_type: str | None
    model: str
    words: Sequence[str] | None = None
    """The newest text's words, where the scorer cut the same text already."""
    memo: Memo | None = None
    """The run's own: where a store keeps what was costly to compute of these texts."""

    @property
    def query(self) -> str:
        """The texts as one."""
        return "\n".join(self.texts)


Flow: TypeAlias = Generator[Request[Any], Any, T]


def ask(request: Request[T]) -> Flow[T]:
    """Yield a request and give back its answer, typed."""
    answer: T = yield request
    return answer
