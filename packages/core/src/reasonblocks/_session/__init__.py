"""A run, steered: the session with its two drivers, deadlines, guard and step log."""

from __future__ import annotations

from ._answers import MEMORY_BYTES, Backends, guests
from ._guard import Faults
from ._runs import ABANDONED, OpenRuns, RunView, TraceStateManager
from ._session import PROTOCOL, SteeringSession, ms_since
from ._telemetry import Telemetry
from ._worker import Guest, Workers

__all__ = [
    "ABANDONED",
    "MEMORY_BYTES",
    "PROTOCOL",
    "Backends",
    "Faults",
    "Guest",
    "OpenRuns",
    "RunView",
    "SteeringSession",
    "Telemetry",
    "TraceStateManager",
    "Workers",
    "guests",
    "ms_since",
]
