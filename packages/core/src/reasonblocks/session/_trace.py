"""The user's door to a run's trace state: look, snapshot, restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..snapshot import decode, encode
from ..types import JSON, TraceState


class TraceStateManager:
    """What steering knows of one run."""

    __slots__ = ("_get", "_put")

    def __init__(self, get: Callable[[], TraceState], put: Callable[[TraceState], None]) -> None:
        self._get, self._put = get, put

    @property
    def state(self) -> TraceState:
        """The state now; frozen."""
        return self._get()

    def get_budget_used(self) -> float | None:
        """Tokens so far as a fraction of `token_budget` (may exceed 1); None without a budget."""
        state = self._get()
        return None if state.token_budget is None else state.total_tokens / state.token_budget

    def snapshot(self) -> dict[str, JSON]:
        """Plain JSON from which any process goes on exactly here: at most 64 KB, typically under 12."""
        return encode(self._get())

    def restore(self, data: Mapping[str, Any]) -> None:
        """Go on from a snapshot; the run takes its id. Raises `SnapshotError`, and nothing has moved then."""
        self._put(decode(data))
