"""Defines the methods of a backend as Protocols. A backend is any object that has them, without inheriting anything.

Methods are called from the thread that runs the step, for several runs at once. A backend that cannot answer raises
`reasonblocks.exceptions.Unavailable`: the step continues without it, and that does not count as a fault.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from .patterns import Curve, SimilarityCurves
from .requests import Evaluate, Retrieve
from .types import (
    JSON,
    Advice,
    AdviceRequest,
    Codebase,
    CodebaseSummary,
    ETrace,
    Evaluation,
    Finding,
    Memories,
    Note,
    RecalledFinding,
    RunInfo,
    Step,
)
from .util.memo import Memo

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from .events import Event

__all__ = [
    "Advisor",
    "AsyncEvaluator",
    "AsyncPatternStore",
    "BatchSink",
    "Curve",
    "Embedder",
    "Evaluate",
    "Evaluator",
    "FindingStore",
    "Mailbox",
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
Advisor: TypeAlias = Callable[[AdviceRequest], "str | Advice | Awaitable[str | Advice | None] | None"]
"""Says what a stuck run should try next, or None. It may be a coroutine function."""


@runtime_checkable
class Evaluator(Protocol):
    """Evaluates all monitors on one completed step.

    An evaluator that also has `async aevaluate(request)` (`AsyncEvaluator`) is awaited on event loops; any other is
    called in a worker thread. Both have until `request.ends`; then the step continues without an evaluation. An
    evaluator with `inline = True` keeps that deadline itself and calls no other code: it is called in place, without a
    worker, and its answer is not validated, unless it also has `remote = True` because it asks another process.

    An answer has at most 64 scores. `fired` names monitors that have a score, texts have at most 8 KB, and the memories
    at most 16 KB of JSON in all, beside those of the caller's own monitors.
    """

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]: ...


@runtime_checkable
class AsyncEvaluator(Protocol):
    """The async method of an evaluator. It must not block the event loop."""

    async def aevaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]: ...


@runtime_checkable
class PatternStore(Protocol):
    """Finds lessons. A search of one org never returns another org's pattern.

    A store that also has `async asearch(request)` (`AsyncPatternStore`) is awaited on event loops; any other is called
    in a worker thread. Both have until `request.ends`. A store with `inline = True` keeps that deadline itself and
    calls no other code: it is called in place, without a worker.
    """

    def search(self, request: Retrieve) -> tuple[ETrace, ...]: ...


@runtime_checkable
class AsyncPatternStore(Protocol):
    """The async method of a store. It must not block the event loop."""

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]: ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of `dim` finite numbers, of any length: stores compare directions.

    `id` names the embedding space: vectors of two ids are never compared. `curves` map cosines to similarities.
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
    """An embedder whose vector of several texts is the sum of theirs, so that older steps are not embedded again.

    `words` are those of the last text, or None if it is not split yet. `memo` is the run's own cache.
    """

    def embed_sum(self, texts: Sequence[str], words: Sequence[str] | None, memo: Memo | None) -> Vector: ...


@runtime_checkable
class Monitor(Protocol):
    """A caller's monitor.

    `observe` is pure. It returns a score in [0, 1], the new memory as JSON of at most 3 KB, and the evidence steps.

    A monitor that raises, returns anything else or takes too long is skipped for that step.
    """

    @property
    def name(self) -> str: ...
    @property
    def failure_type(self) -> str: ...
    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]: ...


@runtime_checkable
class SpeakingMonitor(Monitor, Protocol):
    """A caller's monitor that writes its own text.

    `say` receives the evidence that `observe` returned and the rung: 1, and one more for each text of this monitor
    before in the run. It returns the text for the agent, whose first sentence states the evidence, or None for the
    usual text.
    """

    def say(self, evidence: tuple[int, ...], rung: int) -> str | None: ...


@runtime_checkable
class Mailbox(Protocol):
    """Holds the notes that persons write to live runs.

    `waiting` returns the notes of a run that it has not been told, the oldest first. It is called before each call of
    the run, in a worker thread and within the step's deadline; a mailbox with `inline = True` is called in place. The
    first note that the run has not been told yet is part of that call, and its id is in the call's step event
    (`metadata["note_ids"]`) if the call returned an answer. After a failed call the note is injected again.
    """

    def waiting(self, run_id: str) -> tuple[Note, ...]: ...


@runtime_checkable
class FindingStore(Protocol):
    """Keeps the findings of codebases. No call reads or changes another org's, or another codebase's.

    Findings arrive validated, masked, with their ids and times. Methods block, may be called from any thread, and raise
    `StoreError` or `Unavailable`, after which nothing has changed.
    """

    def put(self, codebase: Codebase, findings: Sequence[Finding]) -> tuple[str, ...]:
        """Store findings, all or none, and return their ids. One with a stored id replaces that one."""
        ...

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        """Return the findings with at least this score, the best first, ties by id, at most `top_k`."""
        ...

    def page(self, codebase: Codebase, *, after: str = "", limit: int = 100) -> tuple[Finding, ...]:
        """Return at most `limit` findings by id, beginning after the id `after`; none at their end."""
        ...

    def remove(self, codebase: Codebase, *, finding_ids: Sequence[str] = (), file_paths: Sequence[str] = ()) -> int:
        """Remove the findings with these ids, and those about these files or files in these folders; count them."""
        ...

    def clear(self, codebase: Codebase) -> int:
        """Remove all findings of a codebase; return their number."""
        ...

    def codebases(self, org_id: str) -> tuple[CodebaseSummary, ...]:
        """Return the codebases of an org that have findings, by id."""
        ...

    def close(self) -> None:
        """Close files and connections. The next use opens them again."""
        ...


@runtime_checkable
class TelemetrySink(Protocol):
    """Receives the events of runs, one at a time, in a background thread of its own.

    A sink that also has `emit_many` (`BatchSink`) receives them in batches.
    """

    def emit(self, event: Event) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class BatchSink(Protocol):
    """Receives events in batches, as an optional extension of a sink, and need not take them all.

    `emit_many` has about `seconds` and returns how many events it took, counted from the first; the others are passed
    again. A sink that takes none, or raises `Unavailable`, is called again after a pause, which `retry_after` of the
    exception may set; its events wait meanwhile. Events are dropped if their call ends in any other exception.

    A sink may have `batch_seconds`, the time for which a batch of fewer than 64 events waits for more, 0 by default.
    """

    def emit_many(self, events: Sequence[Event], seconds: float) -> int: ...
