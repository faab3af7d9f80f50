"""Renders injections into the guidance of one model call: sanitised, in the model family's form, within its size."""

from __future__ import annotations

from ._guidance import (
    CONTEXT_CHARS,
    FIELDS,
    FORMS,
    FRAME,
    INJECTION_BYTES,
    Family,
    family,
    fit,
    guidance,
    lacking,
    monitor_injection,
    note_injection,
    render_pattern,
    reworded,
    steered_text,
    tier_injections,
)
from ._placement import Block, Content, count_breakpoints, place, steered_request, with_tail
from ._sanitise import sanitise

__all__ = [
    "CONTEXT_CHARS",
    "FIELDS",
    "FORMS",
    "FRAME",
    "INJECTION_BYTES",
    "Block",
    "Content",
    "Family",
    "count_breakpoints",
    "family",
    "fit",
    "guidance",
    "lacking",
    "monitor_injection",
    "note_injection",
    "place",
    "render_pattern",
    "reworded",
    "sanitise",
    "steered_request",
    "steered_text",
    "tier_injections",
    "with_tail",
]
