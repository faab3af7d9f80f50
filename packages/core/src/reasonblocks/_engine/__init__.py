"""Turns a completed step into the decision for the next call: the whole pipeline, without I/O.

Read `step_flow` from the top; named sections are those of the behaviour contract. A fault leaves as an exception:
nothing has moved then, and `faulted` returns the state and decision that the session goes on with.
"""

from __future__ import annotations

from ._assess import TEXT_BYTES, amended_calls, completed_step, with_outcome
from ._flow import KEYS_KEPT, faulted, final_fault, final_flow, step_flow

__all__ = [
    "KEYS_KEPT",
    "TEXT_BYTES",
    "amended_calls",
    "completed_step",
    "faulted",
    "final_fault",
    "final_flow",
    "step_flow",
    "with_outcome",
]
