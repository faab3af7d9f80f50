"""A run, steered: the session with its two drivers, deadlines, guard and step log."""

from __future__ import annotations

from ._answers import MEMORY_BYTES, Backends, guests
from ._guard import Faults
from ._runs import ABANDONED, OpenRuns, RunView, TraceStateManager
from ._session import PROTOCOL, InThread, SteeringFlow, SteeringSession, Wait, adrive, drive, ms_since
from ._telemetry import Telemetry
from ._worker import Guest, Workers

__all__ = [
    "ABANDONED",
    "MEMORY_BYTES",
    "PROTOCOL",
    "Backends",
    "Faults",
    "Guest",
    "InThread",
    "OpenRuns",
    "RunView",
    "SteeringFlow",
    "SteeringSession",
    "Telemetry",
    "TraceStateManager",
    "Wait",
    "Workers",
    "adrive",
    "drive",
    "guests",
    "ms_since",
]
