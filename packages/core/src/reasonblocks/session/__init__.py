"""Steers one run: contains the session with its two drivers, the deadlines, the guard and the step log."""

from __future__ import annotations

from ..concurrency.workers import Workers
from ._answers import Backends
from ._bounded_call import BoundedCall, bounded_calls
from ._check_answers import MEMORY_BYTES
from ._drive import InThread, SteeringFlow, Wait, adrive, drive, ms_since
from ._learned import REPLAYED, Agent, Learned, Profiles
from ._runs import OpenRuns, RunView, TraceStateManager
from ._session import PROTOCOL, SteeringSession
from .guard import Faults
from .telemetry import Telemetry

__all__ = [
    "MEMORY_BYTES",
    "PROTOCOL",
    "REPLAYED",
    "Agent",
    "Backends",
    "BoundedCall",
    "Faults",
    "InThread",
    "Learned",
    "OpenRuns",
    "Profiles",
    "RunView",
    "SteeringFlow",
    "SteeringSession",
    "Telemetry",
    "TraceStateManager",
    "Wait",
    "Workers",
    "adrive",
    "bounded_calls",
    "drive",
    "ms_since",
]
