"""A line of a thread's log, and the kinds of lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ._thread import Actor

EventKind: TypeAlias = Literal[
    "thread_opened", "phase_changed", "evidence_added", "policy_changed", "deferred", "noted",
    "intent_inferred", "context_inferred", "action_inferred",
    "inference_started", "inference_failed", "inference_rejected", "gate_judged",
    "confirmed", "corrected", "provided", "picked", "redirected",
    "action_approved", "action_rejected", "review_accepted",
    "execution_started", "execution_finished", "cancel_requested", "late_report",
    "children_opened", "child_ended", "force_closed",
    "source_cleaned_up", "cleanup_failed", "work_dead", "reconciled",
]  # fmt: skip
KINDS: tuple[EventKind, ...] = get_args(EventKind)
FORM = 1
"""The newest form of all kinds' data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEvent:
    """A line of a thread's log. `seq` counts from 1 without gaps; `at` (seconds since the epoch) never gives the order.

    `data` is plain JSON, whose fields `kind` and `form` determine. `command_id` is the command that wrote it,
    `caused_by` the event of another thread that led to it. `position` is its place in the feed of all threads, None
    until it is stored.
    """

    thread_id: str
    seq: int
    kind: str
    actor: Actor
    at: float
    data: Mapping[str, object]
    command_id: str
    form: int = FORM
    caused_by: str | None = None
    position: int | None = None
