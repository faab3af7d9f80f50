"""Sends a few calls of a stuck run to a stronger model, or asks for more reasoning effort, and then goes back."""

from __future__ import annotations

from dataclasses import replace

from ..monitors.suite import is_told
from ..types import FSMState, Settings, TraceState
from . import gates, routing
from .routing import ESCALATE


def begin(state: TraceState, now: FSMState, settings: Settings) -> TraceState:
    """Return the state after its newest step, which may begin an escalation.

    It begins at a step at which a monitor may speak: patience is reached, and the cooldown since the last
    text has passed. Caps and duplicates of texts do not matter to it.
    """
    wanted = settings.escalate
    if wanted is None or state.escalations >= wanted.times or _lasts(state) or len(state.injected) < wanted.after:
        return state
    if gates.cools_down(state, now) or not is_told(state.account, state.patience):
        return state
    return replace(state, escalations=state.escalations + 1, escalated_until=state.steps_begun + wanted.dwell)


def route(state: TraceState, settings: Settings) -> str | None:
    """Return the name of the next call's route: an escalation goes before the state's own model."""
    if _lasts(state) and ESCALATE in settings.routes:
        return ESCALATE
    return routing.route(state.current_state, settings.routes)


def effort(state: TraceState, settings: Settings) -> str | None:
    """Return the reasoning effort of the next call; None for that of the agent."""
    return settings.escalate.effort if settings.escalate is not None and _lasts(state) else None


def _lasts(state: TraceState) -> bool:
    return state.steps_begun < state.escalated_until
