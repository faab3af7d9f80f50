"""Remembers of one run's tool calls what the SDK tells of them: when they began, what they gave, which failed."""

from __future__ import annotations

import time

from reasonblocks.adapters import Newest
from reasonblocks.types import ToolResult

from ._convert import texts_of

MAX_CALLS = 1_024
"""Calls of one step that are remembered."""


class ToolCalls:
    """All by the id of the call."""

    def __init__(self) -> None:
        self.ended: Newest[str, ToolResult] = Newest(MAX_CALLS)
        """Results as the tools gave them; what the model reads of them, where it does, stands in the next request."""
        self.failed: Newest[str, bool] = Newest(MAX_CALLS)
        self._began: Newest[str, float] = Newest(MAX_CALLS)

    def begin(self, call_id: str) -> None:
        self._began.keep(call_id, time.perf_counter())

    def end(self, call_id: str, result: object) -> None:
        began = self._began.get(call_id)
        took = None if began is None else round((time.perf_counter() - began) * 1000, 3)
        text = texts_of(result) or ("" if isinstance(result, (list, dict)) else str(result))
        self.ended.keep(call_id, ToolResult(call_id=call_id, name="", output=text, duration_ms=took))

    def fail(self, call_id: str) -> None:
        self.failed.keep(call_id, True)

    def forget(self) -> None:
        """The step is over. What failed is told by the id alone, also of another run's calls: it stays."""
        self.ended.clear()
        self._began.clear()
