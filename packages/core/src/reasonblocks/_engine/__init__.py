"""One step of steering, from the completed step to the decision for the next call: the whole pipeline, no I/O.

Read `step_flow` from the top; the sections named are those of the behaviour contract. Faults leave as exceptions:
nothing has moved then, and `faulted` gives what the session goes on with.
"""

from __future__ import annotations

from ._flow import KEYS_KEPT, faulted, final_fault, final_flow, step_flow
from ._judge import TEXT_BYTES
from ._kept import amended_calls, completed_step, with_outcome

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
