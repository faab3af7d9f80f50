"""Places guidance in a request, for agents whose loop or framework steering does not know."""

from __future__ import annotations

from ._render import FRAME, count_breakpoints, place, steered_request, with_tail

__all__ = ["FRAME", "count_breakpoints", "place", "steered_request", "with_tail"]
