"""What the user gives, and what it becomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from .._secret import Secret
from .._session import Backends, Faults, Workers
from ..backends._local_store import LocalStore
from ..exceptions import StoreError
from ..ports import Embedder, Monitor, PatternStore, TelemetrySink
from ..types import Placement, Settings, Step, Transition

Calibration = Mapping[str, Any] | str | os.PathLike[str]
Standing = Literal["first_call", "run"]
CLOSE_SECONDS = 0.05
"""The least time in which a store may close; a file takes a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of `ReasonBlocks`, as given."""

    api_key: str | None = field(repr=False)
    base_url: str | None = field(repr=False)
    org_id: str
    project_id: str
    fsm_thresholds: Mapping[str, float] | None
    transition: Transition | None
    model_routing: Mapping[str, object] | None
    token_budget: int | None
    task_profile: str
    weights: Mapping[str, float] | None
    monitors: Iterable[Monitor | str]
    tool_roles: Mapping[str, str] | None
    scorer: Callable[[Step], float] | None
    calibration: Calibration | None
    pattern_store: PatternStore | None
    embedder: Embedder | None
    e_traces_enabled: bool
    e2_requires_signal: bool
    standing_rules: Standing
    sinks: Iterable[TelemetrySink]
    live_streaming_enabled: bool | None
    redact: Callable[[str], str] | None
    placement: Placement
    step_deadline_ms: float
    strict: bool | None


@runtime_checkable
class Closes(Protocol):
    """A store that holds something open."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Checked: what every run of a client starts from."""

    settings: Settings
    backends: Backends
    owns_store: bool
    sinks: tuple[TelemetrySink, ...]
    model_routing: Mapping[str, object]
    weights: Mapping[str, float]
    api_key: Secret | None
    deadline_seconds: float
    strict: bool

    def load(self) -> None:
        """Read now what a step would otherwise have to: patterns, and the tables that search them."""
        store = self.backends.store
        if self.settings.e_traces_enabled and not self.settings.disabled and isinstance(store, LocalStore):
            try:
                store.load()
            except StoreError:  # the built-in lessons are still found
                store.leave_file()
                raise

    def close(self, seconds: float, faults: Faults) -> None:
        """Close the store, unless it is the caller's. A store that does not close in time is abandoned."""
        store = self.backends.store
        if not (self.owns_store and isinstance(store, Closes)):
            return
        try:
            closing = Workers().submit(store.close)
        except RuntimeError:  # no thread can be started at exit
            store.close()
            return
        wait([closing], timeout=max(seconds, CLOSE_SECONDS))
        if closing.done():
            closing.result()
        else:
            name = f"the pattern store {type(store).__name__}"
            faults.say("left behind", f"{name} did not close in the time it had; it is left behind")
