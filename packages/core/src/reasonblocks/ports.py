"""What the engine's requests are answered by. A backend is any object with these methods; nothing to inherit.

Methods are called from whichever thread runs the step, several runs at a time. A backend that cannot answer raises
`reasonblocks.exceptions.Unavailable`: the step goes on without it, and it is not a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .requests import Evaluate, Retrieve
from .types import JSON, ETrace, Evaluation, Memories, RunInfo, Step

if TYPE_CHECKING:
    from .events import Event

__all__ = ["Embedder", "Evaluator", "Monitor", "PatternStore", "TelemetrySink"]


@runtime_checkable
class Evaluator(Protocol):
    """Evaluates all monitors on one completed step."""

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]: ...


@runtime_checkable
class PatternStore(Protocol):
    """Finds lessons. A search of one org never returns another org's pattern."""

    def search(self, request: Retrieve) -> tuple[ETrace, ...]: ...


@runtime_checkable
class Embedder(Protocol):
    """Turns text into a vector. `id` names the embedding space: vectors of two ids are never compared.

    `similarity` maps the raw cosine of two vectors to the calibrated 0..1 that the tiers' thresholds speak of.
    """

    @property
    def id(self) -> str: ...
    @property
    def dim(self) -> int: ...
    def embed(self, text: str) -> tuple[float, ...]: ...
    def similarity(self, cosine: float) -> float: ...


@runtime_checkable
class Monitor(Protocol):
    """A caller's own monitor. `observe` is pure: it gives (score 0..1, new memory as JSON <= 3 KB, evidence steps)."""

    @property
    def name(self) -> str: ...
    @property
    def failure_type(self) -> str: ...
    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]: ...


@runtime_checkable
class TelemetrySink(Protocol):
    """Takes the events of runs, one at a time, from a background thread."""

    def emit(self, event: Event) -> None: ...
    def close(self) -> None: ...
