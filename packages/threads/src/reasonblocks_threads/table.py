"""The transition table: every cell with its possible targets, the kinds of cards, and the times of the phases."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from .phases import STAGES, CardKind, Phase, Trigger, clarification, inferring

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0

# Times in seconds after which a phase times out. None has been tuned on use: they are the design's first values.
WAIT_S = 7 * DAY_S
"""A card that nobody answers."""
REVIEW_S = 72 * HOUR_S
"""A review that nobody answers: the outcome is accepted."""
PROPOSED_S = 24 * HOUR_S
"""A thread whose inference never begins."""
QUEUED_LIVE_S = 120.0
"""An inference that nobody starts, while its run is live."""
QUEUED_S = 15 * MINUTE_S
"""The same while its run is not live."""
INFERRING_S = 180.0
"""An inference, over both of its leases of 60 s and a pause between them."""
CLEANUP_S = 150.0
"""A clean-up, over both of its leases of 60 s and a pause between them."""

Targets: TypeAlias = tuple[Phase, ...]

_QUEUED: Targets = (Phase.AWAITING_INFERENCE,)
_DISMISSED: Targets = (Phase.DISMISSED,)
_INFERRING: Targets = tuple(map(inferring, STAGES))
_CLARIFIED: Targets = tuple(map(clarification, STAGES))

_CLOSE: Mapping[Trigger, Targets] = {Trigger.DISMISSED_BY_USER: _DISMISSED, Trigger.PARENT_FORCE_CLOSE: _DISMISSED}
_LEAVE: Mapping[Trigger, Targets] = {
    **_CLOSE,
    Trigger.SOURCE_RESOLVED: _DISMISSED,
    Trigger.HANDED_OFF_BY_USER: (Phase.HANDED_OFF,),
}
_WAIT: Mapping[Trigger, Targets] = {
    **_LEAVE,
    Trigger.TIMEOUT: _DISMISSED,
    Trigger.CLEANUP_REQUESTED: (Phase.CLEANING_UP,),
}


def _inferring(*done: Phase, failed: Phase) -> Mapping[Trigger, Targets]:
    return {
        Trigger.INFERENCE_DONE: done,
        Trigger.INFERENCE_FAILED: (failed,),
        Trigger.TIMEOUT: (failed,),
        **_LEAVE,
    }


_CONFIRMATION: Mapping[Trigger, Targets] = {
    Trigger.CONFIRMED: _QUEUED,
    Trigger.EDITED: _QUEUED,
    Trigger.REDIRECTED: _QUEUED,
    **_WAIT,
}
_CLARIFICATION: Mapping[Trigger, Targets] = {Trigger.PROVIDED: _QUEUED, Trigger.REDIRECTED: _QUEUED, **_WAIT}

_TABLE: Mapping[Phase, Mapping[Trigger, Targets]] = {
    Phase.PROPOSED: {
        Trigger.BEGIN_INFERENCE: _QUEUED,
        Trigger.DECOMPOSED: (Phase.MONITORING,),
        Trigger.TIMEOUT: _DISMISSED,
        **_LEAVE,
    },
    Phase.AWAITING_INFERENCE: {
        Trigger.INFERENCE_STARTED: _INFERRING,
        Trigger.INFERENCE_REJECTED: _CLARIFIED,
        Trigger.TIMEOUT: _CLARIFIED,
        **_LEAVE,
    },
    Phase.INFERRING_INTENT: _inferring(
        Phase.AWAITING_INFERENCE, Phase.AWAITING_INTENT_CONFIRMATION, failed=Phase.AWAITING_INTENT_CLARIFICATION
    ),
    Phase.INFERRING_CONTEXT: _inferring(
        Phase.AWAITING_INFERENCE, Phase.AWAITING_CONTEXT_CONFIRMATION, failed=Phase.AWAITING_CONTEXT_CLARIFICATION
    ),
    Phase.INFERRING_ACTION: _inferring(
        Phase.AWAITING_ACTION_CLARIFICATION, Phase.EXECUTING, Phase.AWAITING_CONFIRMATION,
        failed=Phase.AWAITING_ACTION_CLARIFICATION,
    ),
    Phase.AWAITING_INTENT_CONFIRMATION: _CONFIRMATION,
    Phase.AWAITING_CONTEXT_CONFIRMATION: _CONFIRMATION,
    Phase.AWAITING_INTENT_CLARIFICATION: _CLARIFICATION,
    Phase.AWAITING_CONTEXT_CLARIFICATION: _CLARIFICATION,
    Phase.AWAITING_ACTION_CLARIFICATION: {
        **_CLARIFICATION,
        Trigger.PROVIDED: (Phase.AWAITING_CONFIRMATION, Phase.AWAITING_INFERENCE),
    },
    Phase.AWAITING_CONFIRMATION: {
        Trigger.EXECUTE: (Phase.EXECUTING,),
        Trigger.EDITED: (Phase.AWAITING_CONFIRMATION,),
        Trigger.REDIRECTED: _QUEUED,
        Trigger.REJECTED: _DISMISSED,
        **_WAIT,
    },
    Phase.EXECUTING: {
        Trigger.EXECUTION_DONE: (Phase.HANDED_OFF, Phase.MONITORING, Phase.AWAITING_REVIEW, Phase.DONE),
        Trigger.EXECUTION_FAILED: (Phase.AWAITING_REDIRECT,),
        Trigger.TIMEOUT: (Phase.AWAITING_REDIRECT,),
        Trigger.PARENT_FORCE_CLOSE: _DISMISSED,
    },
    Phase.AWAITING_REVIEW: {
        Trigger.REVIEW_ACCEPTED: (Phase.DONE,),
        Trigger.TIMEOUT: (Phase.DONE,),
        Trigger.REDIRECTED: _QUEUED,
        Trigger.CLEANUP_REQUESTED: (Phase.CLEANING_UP,),
        Trigger.HANDED_OFF_BY_USER: (Phase.HANDED_OFF,),
        **_CLOSE,
    },
    Phase.AWAITING_REDIRECT: {Trigger.PROVIDED: _QUEUED, Trigger.REDIRECTED: _QUEUED, **_WAIT},
    Phase.MONITORING: {
        Trigger.EXECUTION_DONE: (Phase.DISMISSED, Phase.DONE),
        Trigger.HANDED_OFF_BY_USER: (Phase.HANDED_OFF,),
        **_CLOSE,
    },
    Phase.CLEANING_UP: {
        Trigger.CLEANUP_SUCCEEDED: (Phase.DONE_CLEANUP_SUCCESSFUL,),
        Trigger.CLEANUP_FAILED: (Phase.DONE_CLEANUP_UNSUCCESSFUL,),
        Trigger.TIMEOUT: (Phase.DONE_CLEANUP_UNSUCCESSFUL,),
        **_CLOSE,
    },
    Phase.DONE_CLEANUP_UNSUCCESSFUL: {
        Trigger.RETRY_CLEANUP: (Phase.CLEANING_UP,),
        Trigger.ACCEPT_CLEANUP_FAILURE: (Phase.DONE,),
        Trigger.TIMEOUT: _DISMISSED,
        **_CLOSE,
    },
    Phase.DONE: {},
    Phase.DISMISSED: {},
    Phase.HANDED_OFF: {},
    Phase.DONE_CLEANUP_SUCCESSFUL: {},
}  # fmt: skip

CELLS: Mapping[tuple[Phase, Trigger], Targets] = MappingProxyType(
    {(phase, trigger): targets for phase, row in _TABLE.items() for trigger, targets in row.items()}
)
"""The possible targets of each trigger in each phase; guards choose among them."""

CARD_KINDS: Mapping[Phase, CardKind] = MappingProxyType(
    {
        Phase.AWAITING_INTENT_CONFIRMATION: "confirmation",
        Phase.AWAITING_CONTEXT_CONFIRMATION: "confirmation",
        Phase.AWAITING_INTENT_CLARIFICATION: "clarification",
        Phase.AWAITING_CONTEXT_CLARIFICATION: "clarification",
        Phase.AWAITING_ACTION_CLARIFICATION: "clarification",
        Phase.AWAITING_CONFIRMATION: "consent",
        Phase.AWAITING_REVIEW: "review",
        Phase.AWAITING_REDIRECT: "redirect",
        Phase.DONE_CLEANUP_UNSUCCESSFUL: "cleanup_failure",
    }
)
"""The card of each phase that waits for a person."""


def possible(phase: Phase) -> tuple[Trigger, ...]:
    """Return the triggers that a phase has."""
    return tuple(_TABLE[phase])
