"""Steers one run: contains the session with its two drivers, the deadlines, the guard and the step log."""

from __future__ import annotations

from ..concurrency.workers import Workers
from ._check_answers import MEMORY_BYTES
from .answers import Backends
from .bounded_call import BoundedCall, bounded_calls
from .drive import InThread, SteeringFlow, Wait, adrive, drive, ms_since
from .guard import Faults
from .patience import REPLAYED, Agent, Learned, Profiles
from .runs import OpenRuns, RunView, TraceStateManager
from .session import PROTOCOL, SteeringSession
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
