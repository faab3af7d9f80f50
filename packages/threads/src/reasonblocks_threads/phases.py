"""The words of the state machine: phases with their categories, stages, triggers, and the kinds of cards."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Literal, TypeAlias


class Stage(str, Enum):
    """The part of a matter that is settled at present: the intent, then the context, then the action."""

    INTENT = "intent"
    CONTEXT = "context"
    ACTION = "action"


STAGES: tuple[Stage, ...] = tuple(Stage)

Category: TypeAlias = Literal["inception", "queued", "inferring", "wait", "execution", "cleanup", "terminal"]


class Phase(str, Enum):
    """A phase of a thread. `CATEGORIES` has the category of each."""

    PROPOSED = "proposed"
    AWAITING_INFERENCE = "awaiting_inference"
    INFERRING_INTENT = "inferring_intent"
    INFERRING_CONTEXT = "inferring_context"
    INFERRING_ACTION = "inferring_action"
    AWAITING_INTENT_CONFIRMATION = "awaiting_intent_confirmation"
    AWAITING_CONTEXT_CONFIRMATION = "awaiting_context_confirmation"
    AWAITING_INTENT_CLARIFICATION = "awaiting_intent_clarification"
    AWAITING_CONTEXT_CLARIFICATION = "awaiting_context_clarification"
    AWAITING_ACTION_CLARIFICATION = "awaiting_action_clarification"
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    EXECUTING = "executing"
    AWAITING_REVIEW = "awaiting_review"
    AWAITING_REDIRECT = "awaiting_redirect"
    MONITORING = "monitoring"
    CLEANING_UP = "cleaning_up"
    DONE_CLEANUP_UNSUCCESSFUL = "done_cleanup_unsuccessful"
    DONE = "done"
    DISMISSED = "dismissed"
    HANDED_OFF = "handed_off"
    DONE_CLEANUP_SUCCESSFUL = "done_cleanup_successful"

    @property
    def is_terminal(self) -> bool:
        """True for a phase that a thread never leaves."""
        return CATEGORIES[self] == "terminal"

    @property
    def action_has_ended(self) -> bool:
        """True for a phase in which no action is running or due, unless a person asks for another one."""
        return self.is_terminal or self in OUTCOMES

    @property
    def waits(self) -> bool:
        """True for a phase with an open card."""
        return CATEGORIES[self] == "wait"


def inferring(stage: Stage) -> Phase:
    """Return the phase in which a stage is inferred."""
    return Phase(f"inferring_{stage.value}")


def clarification(stage: Stage) -> Phase:
    """Return the phase in which a person is asked for missing information."""
    return Phase(f"awaiting_{stage.value}_clarification")


CATEGORIES: Mapping[Phase, Category] = MappingProxyType(
    {
        Phase.PROPOSED: "inception",
        Phase.AWAITING_INFERENCE: "queued",
        Phase.INFERRING_INTENT: "inferring",
        Phase.INFERRING_CONTEXT: "inferring",
        Phase.INFERRING_ACTION: "inferring",
        Phase.AWAITING_INTENT_CONFIRMATION: "wait",
        Phase.AWAITING_CONTEXT_CONFIRMATION: "wait",
        Phase.AWAITING_INTENT_CLARIFICATION: "wait",
        Phase.AWAITING_CONTEXT_CLARIFICATION: "wait",
        Phase.AWAITING_ACTION_CLARIFICATION: "wait",
        Phase.AWAITING_CONFIRMATION: "wait",
        Phase.EXECUTING: "execution",
        Phase.AWAITING_REVIEW: "wait",
        Phase.AWAITING_REDIRECT: "wait",
        Phase.MONITORING: "execution",
        Phase.CLEANING_UP: "cleanup",
        Phase.DONE_CLEANUP_UNSUCCESSFUL: "wait",
        Phase.DONE: "terminal",
        Phase.DISMISSED: "terminal",
        Phase.HANDED_OFF: "terminal",
        Phase.DONE_CLEANUP_SUCCESSFUL: "terminal",
    }
)

OUTCOMES: frozenset[Phase] = frozenset(
    {Phase.AWAITING_REVIEW, Phase.AWAITING_REDIRECT, Phase.DONE_CLEANUP_UNSUCCESSFUL}
)
"""The phases that ask a person about the outcome of an action or a clean-up."""


class Trigger(str, Enum):
    """A reason for which a thread changes its phase."""

    # a person's
    CONFIRMED = "confirmed"
    EDITED = "edited"
    REDIRECTED = "redirected"
    PROVIDED = "provided"
    EXECUTE = "execute"
    REJECTED = "rejected"
    REVIEW_ACCEPTED = "review_accepted"
    CLEANUP_REQUESTED = "cleanup_requested"
    RETRY_CLEANUP = "retry_cleanup"
    ACCEPT_CLEANUP_FAILURE = "accept_cleanup_failure"
    DISMISSED_BY_USER = "dismissed_by_user"
    HANDED_OFF_BY_USER = "handed_off_by_user"
    # the system's
    BEGIN_INFERENCE = "begin_inference"
    DECOMPOSED = "decomposed"
    TIMEOUT = "timeout"
    INFERENCE_STARTED = "inference_started"
    INFERENCE_REJECTED = "inference_rejected"
    INFERENCE_DONE = "inference_done"
    INFERENCE_FAILED = "inference_failed"
    EXECUTION_DONE = "execution_done"
    EXECUTION_FAILED = "execution_failed"
    CLEANUP_SUCCEEDED = "cleanup_succeeded"
    CLEANUP_FAILED = "cleanup_failed"
    PARENT_FORCE_CLOSE = "parent_force_close"
    SOURCE_RESOLVED = "source_resolved"


HUMAN: frozenset[Trigger] = frozenset(
    {
        Trigger.CONFIRMED, Trigger.EDITED, Trigger.REDIRECTED, Trigger.PROVIDED, Trigger.EXECUTE, Trigger.REJECTED,
        Trigger.REVIEW_ACCEPTED, Trigger.CLEANUP_REQUESTED, Trigger.RETRY_CLEANUP, Trigger.ACCEPT_CLEANUP_FAILURE,
        Trigger.DISMISSED_BY_USER, Trigger.HANDED_OFF_BY_USER,
    }
)  # fmt: skip
"""The triggers that only a person may submit; only the system submits the others."""


class Addition(str, Enum):
    """A command that opens a thread or adds to its log without moving it."""

    OPEN = "open"
    CHILDREN = "children"
    EVIDENCE = "evidence"
    NOTE = "note"
    DEFER = "defer"
    POLICY = "policy"
    CANCEL = "cancel"
    EXECUTION_STARTED = "execution_started"
    LATE_REPORT = "late_report"
    WORK_DEAD = "work_dead"
    RECONCILED = "reconciled"


CardKind: TypeAlias = Literal["confirmation", "clarification", "consent", "review", "redirect", "cleanup_failure"]
AnswerName: TypeAlias = Literal[
    "accept", "edit", "redirect", "provide", "skip", "approve", "reject", "done", "drop", "retry", "accept_failure",
    "take_over", "dismiss", "clean_up", "later",
]  # fmt: skip
WorkKind: TypeAlias = Literal[
    "begin", "infer", "execute", "clean_up", "timeout", "cascade_up", "cascade_down", "notify"
]
RunStatus: TypeAlias = Literal["live", "ended", "unknown"]
