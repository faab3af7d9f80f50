"""The events that sinks receive: a run's start, each call, and its finish (the telemetry bodies of the wire)."""

from __future__ import annotations

from .event import Event, RunFinish, RunStart, StepEvent, completed_of, entry_of, event_of, step_event

__all__ = ["Event", "RunFinish", "RunStart", "StepEvent", "completed_of", "entry_of", "event_of", "step_event"]
