"""Turns a completed step into the decision for the next call: the whole pipeline, without I/O.

Read `step_flow` from the top; named sections are those of the behaviour contract. A fault is raised as an exception,
and the state is unchanged. `faulted` then returns the state and decision with which the session continues.
"""

from __future__ import annotations

from ._assess import TEXT_BYTES, amended_calls, completed_step, with_outcome
from ._decide import (
    KEYS_KEPT,
    adopt_state,
    in_system,
    is_second_look_to_come,
    key_of,
    with_note,
    without_effort,
    without_guidance,
)
from ._flow import after_fault, step_flow
from ._last import final_fault, final_flow, look_flow
from ._speak import MOST_ADVICE
from .tool_limits import refusal

__all__ = [
    "KEYS_KEPT",
    "MOST_ADVICE",
    "TEXT_BYTES",
    "adopt_state",
    "after_fault",
    "amended_calls",
    "completed_step",
    "final_fault",
    "final_flow",
    "in_system",
    "is_second_look_to_come",
    "key_of",
    "look_flow",
    "refusal",
    "step_flow",
    "with_note",
    "with_outcome",
    "without_effort",
    "without_guidance",
]
