"""One step of steering, from the completed step to the decision for the next call: the whole pipeline, no I/O.

Read `step_flow` from the top; the sections named are those of the behaviour contract. Faults leave as exceptions:
nothing has moved then, and `faulted` gives what the session goes on with.
"""

from __future__ import annotations

from ._flow import KEYS_KEPT, completed_step, faulted, final_fault, final_flow, step_flow, with_outcome
from ._judge import TEXT_BYTES

__all__ = [
    "KEYS_KEPT",
    "TEXT_BYTES",
    "completed_step",
    "faulted",
    "final_fault",
    "final_flow",
    "step_flow",
    "with_outcome",
]
