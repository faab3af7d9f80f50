"""Renders injections into the guidance of one model call, and places it in a request.

The names of this module are for agents whose loop or framework steering does not know.
"""

from __future__ import annotations

from .guidance import FRAME
from .placement import (
    count_breakpoints,
    defuse_frames,
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
    "defuse_frames",
    "has_tail",
    "place",
    "steered_request",
    "with_guidance",
    "with_message",
    "with_tail",
]
