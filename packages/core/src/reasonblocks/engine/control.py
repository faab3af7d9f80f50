"""Applies the user's controls: ends the run, asks a person, changes injections, and adds notes (section 9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..render.guidance import fit, note_injection
from ..requests import Check, Collect, Flow, Review, ask
from ..types import FSMState, Injection, Note, Settings, Source, StepDecision, TraceState
from ..types.steering import Condition
from . import budget

LASTING_STEPS = 8
"""Steps in a row on which a monitor has to fire after a text of its own before the run counts as stalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The reasons to end the run, and to ask a person before the next call; None if there is none."""

    stop: str | None = None
    interrupt: str | None = None


NOTHING = Verdict()


def verdict(state: TraceState, decision: StepDecision, settings: Settings) -> Flow[tuple[TraceState, Verdict]]:
    """Return the state and the verdict on a run after its newest step.

    A person is asked only once as long as the condition holds.
    """
    if settings.stop_when is None and settings.interrupt_when is None and settings.budget is None:
        return state, NOTHING
    stop = yield from reason_to_stop(state, decision, settings)
    if stop is not None and settings.mode == "steer":
        return state, Verdict(stop=stop)
    otherwise = "still" if state.interrupted else None  # a condition that raises is assumed to hold still
    interrupt = yield from _reason("interrupt_when", settings.interrupt_when, state, decision, otherwise)
    new = interrupt if not state.interrupted else None
    if (interrupt is not None) != state.interrupted:
        state = replace(state, interrupted=interrupt is not None)
    return state, Verdict(stop=stop, interrupt=new)


def apply_stop_rule(decision: StepDecision, found: Verdict, settings: Settings) -> StepDecision:
    """Return the decision with the verdict on a run that continues."""
    if found.stop is None and found.interrupt is None:
        return decision
    if settings.mode == "observe":
        return replace(decision, withheld_stop=found.stop, withheld_interrupt=found.interrupt)
    return replace(decision, interrupt=found.interrupt)


def reason_to_stop(state: TraceState, decision: StepDecision, settings: Settings) -> Flow[str | None]:
    """Return the reason for which the budget or `stop_when` ends the run, or None."""
    if budget.is_used_up(state, settings):
        return budget.REASON
    return (yield from _reason("stop_when", settings.stop_when, state, decision, None))


def _reason(
    option: str, condition: Condition | None, state: TraceState, decision: StepDecision, otherwise: str | None
) -> Flow[str | None]:
    if condition is None:
        return None
    if condition == "caller":
        return (yield from ask(Check(option=option, otherwise=otherwise, state=state, decision=decision)))
    holds = is_stalled(state) if condition == "stalled" else is_over_budget(state)
    return condition if holds else None


def is_stalled(state: TraceState) -> bool:
    """Return True in SKIP, and if a monitor has fired on each of the 8 newest steps, all after a text of its own."""
    if state.current_state is FSMState.SKIP:
        return True
    newest = state.steps[-LASTING_STEPS:]
    if not state.injected or len(newest) < LASTING_STEPS:
        return False
    if newest[-1].step - newest[0].step >= LASTING_STEPS:  # a step between them was not evaluated
        return False
    lasting = set.intersection(*(set(record.fired) for record in newest))
    return any(one.monitor in lasting and one.step <= newest[0].step for one in state.injected)


def is_over_budget(state: TraceState) -> bool:
    """Return True if the run has used more tokens than its budget."""
    return state.token_budget is not None and state.total_tokens > state.token_budget


def review_injection(
    injection: Injection, state: TraceState, decision: StepDecision, settings: Settings
) -> Flow[Injection | None]:
    """Return the injection that the user's `on_injection` returns, or None if it drops it."""
    if not settings.on_injection:
        return injection
    return (yield from ask(Review(injection=injection, state=state, decision=decision)))


def review_injections(
    injections: Iterable[Injection], state: TraceState, decision: StepDecision, settings: Settings
) -> Flow[tuple[tuple[Injection, ...], tuple[Source, ...]]]:
    """Return the injections that `on_injection` returns, and the sources of the dropped ones."""
    if not settings.on_injection:
        return tuple(injections), ()
    kept: list[Injection] = []
    dropped: list[Source] = []
    for injection in injections:
        left = yield from review_injection(injection, state, decision, settings)
        if left is None:
            dropped.append(injection.source)
        else:
            kept.append(left)
    return tuple(kept), tuple(dropped)


def next_note(state: TraceState, settings: Settings) -> Flow[Note | None]:
    """Return the oldest note that the run has not been told yet, or None. One too long for its guidance never is."""
    if not settings.operator_notes:
        return None
    waiting = yield from ask(Collect(run_id=state.trace_id))
    new = (note for note in waiting if note.id not in state.notes_told)
    return next((note for note in new if _fits(note_injection(note.text), settings)), None)


def _fits(note: Injection | None, settings: Settings) -> bool:
    return note is not None and bool(fit([note], settings.max_guidance_chars)[0])
