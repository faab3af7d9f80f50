"""A run, steered: the session with its two drivers, deadlines, guard and step log."""

from __future__ import annotations

from ._answers import Backends, guests
from ._callables import MEMORY_BYTES
from ._guard import Faults
from ._runs import ABANDONED, OpenRuns, RunView
from ._session import SteeringSession
from ._telemetry import Telemetry
from ._trace import TraceStateManager
from ._turn import PROTOCOL, ms_since
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
