"""Places guidance in a request, for agents whose loop or framework steering does not know."""

from __future__ import annotations

from ._render import (
    FRAME,
    count_breakpoints,
    defused,
    has_tail,
    place,
    steered_request,
    with_guidance,
    with_message,
    with_tail,
)

__all__ = [
    "FRAME",
    "count_breakpoints",
    "defused",
    "has_tail",
    "place",
    "steered_request",
    "with_guidance",
    "with_message",
    "with_tail",
]
