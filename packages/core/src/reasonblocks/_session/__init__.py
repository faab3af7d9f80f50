"""Steers one run: the session with its two drivers, deadlines, guard and step log."""

from __future__ import annotations

from .._threads import Workers
from ._answers import Backends
from ._bounded_call import BoundedCall, bounded_calls
from ._check_answers import MEMORY_BYTES
from ._guard import Faults
from ._runs import ABANDONED, OpenRuns, RunView, TraceStateManager
from ._session import PROTOCOL, SteeringSession, ms_since
from ._telemetry import Telemetry

__all__ = [
    "ABANDONED",
    "MEMORY_BYTES",
    "PROTOCOL",
    "Backends",
    "BoundedCall",
    "Faults",
    "OpenRuns",
    "RunView",
    "SteeringSession",
    "Telemetry",
    "TraceStateManager",
    "Workers",
    "bounded_calls",
    "ms_since",
]
