"""Commands, the events that they write to a log, and the rows beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from ..phases import Addition, Phase, Trigger, WorkKind
from ._card import Card
from ._thread import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectCard:
    """The card is still open."""

    card: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectWork:
    """The work is still there and leased with this token."""

    work: str
    lease: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectPhase:
    """The thread is still in the phase that it entered at this seq."""

    phase: Phase
    entered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectVersion:
    """The thread has no newer event than this; with 0, it does not exist yet."""

    version: int


Expect: TypeAlias = ExpectCard | ExpectWork | ExpectPhase | ExpectVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A request to move a thread (a `Trigger`) or to add to its log (an `Addition`). An `id` takes effect once.

    `at` is seconds since the epoch. Raises ValueError without an id, a thread, or an expectation.
    """

    id: str
    thread_id: str
    trigger: Trigger | Addition
    expect: Expect
    actor: Actor
    at: float
    data: Mapping[str, object] = field(default_factory=dict)
    caused_by: str | None = None

    def __post_init__(self) -> None:
        if not self.id or not self.thread_id:
            raise ValueError(f"a command needs an id and a thread, got id={self.id!r}, thread_id={self.thread_id!r}")
        match self.expect:
            case ExpectCard(card=found) | ExpectWork(work=found):
                given = bool(found) and (not isinstance(self.expect, ExpectWork) or bool(self.expect.lease))
            case ExpectPhase() | ExpectVersion():
                given = True
            case _:
                given = False
        if not given:
            raise ValueError(f"a command needs what it expects, got {self.expect!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A work item. `lease` is the token of the process that does it at present, until `leased_until`.

    `needs` names the requirement of the work: an action, an inferencer, a cleaner or "notifier". It is "" if every
    process can do the work.
    """

    id: str
    thread_id: str
    kind: WorkKind
    entered: int
    """The seq at which the thread entered the phase of this work."""
    due_at: float
    urgency: int = 100
    """Smaller numbers are done first; every 5 minutes of waiting subtract 10."""
    attempts: int = 0
    lease: str | None = None
    leased_until: float | None = None
    needs: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWork:
    """A work item to be added; its id follows from thread, seq and kind."""

    kind: WorkKind
    due_at: float
    urgency: int = 100
    needs: str = ""
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A change of the rows beside the log: rows are withdrawn and cancelled first, then added.

    In a terminal phase, only cascades remain.
    """

    withdraw_card: bool = False
    cancel: tuple[WorkKind, ...] = ()
    works: tuple[NewWork, ...] = ()
    card: Card | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Guidance on its way to a run, of at most 1,200 characters. `id` is the execution's.

    `state`: "waiting", "told" (a call of its run has carried it) or "withdrawn" (none did before its execution ended).
    """

    id: str
    thread_id: str
    run_id: str
    text: str
    at: float
    state: str = "waiting"
    calls: int = 0
    """The calls of the run that returned without the letter since it was written."""


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
"""The newest form of the data of all kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEvent:
    """A line of a thread's log. `seq` counts from 1 without gaps; `at` (seconds since the epoch) is not the order.

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
