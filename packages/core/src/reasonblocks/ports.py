"""Defines the methods of a backend as Protocols: any object that has them is one, without inheriting anything.

Methods are called from whichever thread runs the step, several runs at a time. A backend that cannot answer raises
`reasonblocks.exceptions.Unavailable`: the step goes on without it, and it is not a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from ._memo import Memo
from ._patterns import Curve, SimilarityCurves
from ._requests import Evaluate, Retrieve
from .types import JSON, ETrace, Evaluation, Memories, RunInfo, Step

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from .events import Event

__all__ = [
    "AsyncEvaluator",
    "AsyncPatternStore",
    "BatchSink",
    "Curve",
    "Embedder",
    "Evaluate",
    "Evaluator",
    "Memo",
    "Monitor",
    "PatternStore",
    "Retrieve",
    "SimilarityCurves",
    "SpeakingMonitor",
    "SummingEmbedder",
    "TelemetrySink",
    "Vector",
    "Vectors",
]

Vector: TypeAlias = "Sequence[float] | NDArray[numpy.float32]"
Vectors: TypeAlias = "Sequence[Sequence[float]] | NDArray[numpy.float32]"


@runtime_checkable
class Evaluator(Protocol):
    """Evaluates all monitors on one completed step.

    An evaluator that has `async aevaluate(request)` as well (`AsyncEvaluator`) is awaited on event loops; another one
    is called in a worker thread. Both get until `request.ends`, and then the step goes on without an evaluation. One
    with `inline = True` keeps that deadline itself and calls nobody else's code: it is called in place, without a
    worker, and its answer is not validated.

    An answer has at most 64 scores, `fired` names monitors that have one, texts have at most 8 KB, and the memories
    at most 16 KB of JSON in all, beside those of the caller's own monitors.
    """

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]: ...


@runtime_checkable
class AsyncEvaluator(Protocol):
    """The second face of an evaluator, for event loops: it must not block them."""

    async def aevaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]: ...


@runtime_checkable
class PatternStore(Protocol):
    """Finds lessons. A search of one org never returns another org's pattern.

    A store that has `async asearch(request)` as well (`AsyncPatternStore`) is awaited on event loops; another one is
    called in a worker thread. Both get until `request.ends`. One with `inline = True` keeps that deadline itself and
    calls nobody else's code: it is called in place, without a worker.
    """

    def search(self, request: Retrieve) -> tuple[ETrace, ...]: ...


@runtime_checkable
class AsyncPatternStore(Protocol):
    """The second face of a store, for event loops: it must not block them."""

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]: ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of `dim` finite numbers, of any length: stores compare directions.

    `id` names the embedding space: vectors of two ids are never compared. `curves` say what a cosine is worth.
    """

    @property
    def id(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def curves(self) -> SimilarityCurves: ...
    def embed(self, text: str) -> Vector: ...
    def embed_many(self, texts: Sequence[str]) -> Vectors: ...


@runtime_checkable
class SummingEmbedder(Protocol):
    """An embedder for which several texts together are the sum of each: that of older steps is not computed again.

    `words` are the last text's, cut already, if someone did; `memo` is the run's own, to keep things in.
    """

    def embed_sum(self, texts: Sequence[str], words: Sequence[str] | None, memo: Memo | None) -> Vector: ...


@runtime_checkable
class Monitor(Protocol):
    """A caller's own monitor. `observe` is pure: it returns (score 0..1, new memory as JSON <= 3 KB, evidence steps).

    A monitor that raises, returns anything else, or takes too long is skipped for that step; all others continue.
    """

    @property
    def name(self) -> str: ...
    @property
    def failure_type(self) -> str: ...
    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]: ...


@runtime_checkable
class SpeakingMonitor(Monitor, Protocol):
    """A caller's own monitor with its own words.

    `say` gets the evidence that `observe` returned and the rung, 1 to 3 (the evidence, firmer, wrap up). It returns
    the text for the agent, whose first sentence is the evidence, or None for the usual text.
    """

    def say(self, evidence: tuple[int, ...], rung: int) -> str | None: ...


@runtime_checkable
class TelemetrySink(Protocol):
    """Receives the events of runs, one at a time, in a background thread of its own.

    A sink that has `emit_many` as well (`BatchSink`) receives them in batches.
    """

    def emit(self, event: Event) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class BatchSink(Protocol):
    """The second face of a sink: it receives several events at once, and need not take them all.

    `emit_many` has about `seconds` and returns how many events it took, counted from the first; the others are offered
    again. A sink that takes none, or raises `Unavailable`, is asked again after a pause, which `retry_after` of the
    exception may set; its events wait meanwhile. Events of an offer that ends in any other exception are dropped.
    """

    def emit_many(self, events: Sequence[Event], seconds: float) -> int: ...
