"""Decides how a run ends: with its final step, by `stop_when`, or after a second look at a doubtful end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..monitors.builtin import BY_NAME
from ..monitors.second_look import is_due, text_of_look
from ..render import guidance as render
from ..requests import Flow
from ..types import Doubt, FSMState, Injection, Settings, Source, Step, StepDecision, StepInput, TraceState
from . import budget, escalation, gates
from ._assess import Assessment, assess, decision_for, record_assessment
from ._decide import SENT_KEPT, blank, finish_decision, key_of, remember_decision, skipped_reason
from ._speak import doubts_of, with_injected
from .control import is_over_budget, next_note, reason_to_stop, review_injection


def final_flow(
    state: TraceState, completed: Step | None, settings: Settings, *, withholds_look: bool = False
) -> Flow[tuple[TraceState, StepDecision]]:
    """Score, advance and evaluate the last completed step, without injecting anything (section 1, 12).

    With `withholds_look`, the decision records the text of the second look that the run would get if it went on.
    """
    assessment = yield from assess(state, completed, settings)
    decision = _final(state, assessment, settings)
    after = record_assessment(state, assessment)
    looks = settings.second_look is not None and withholds_look and state.second_look is None
    if looks and (yield from _may_go_on(after, decision, settings, None)):
        look = yield from _look(after, assessment, decision, settings)
        decision = replace(decision, withheld=look.told, dropped=look.dropped)
    return after, decision


def final_fault(state: TraceState, settings: Settings) -> tuple[TraceState, StepDecision]:
    """Return the unchanged state, and the final decision of a run whose last step could not be assessed."""
    return state, replace(blank(state, settings, None, skipped="fault"), gate_decision="final")


def stop_before_call(
    state: TraceState, given: StepInput, assessment: Assessment, reason: str, settings: Settings
) -> tuple[TraceState, StepDecision]:
    """Return the state that stores the final decision of a run ended before its next call, and that decision."""
    decision = replace(_final(state, assessment, settings), key=key_of(given), stop=reason)
    return remember_decision(record_assessment(state, assessment), given, decision)


def stop_over_budget(state: TraceState, given: StepInput, settings: Settings) -> tuple[TraceState, StepDecision] | None:
    """Return the state and final decision if a used-up budget ends the run after a fault; None otherwise."""
    used_up = budget.is_used_up(state, settings)
    if settings.mode == "observe" or not (used_up or (settings.stop_when == "over_budget" and is_over_budget(state))):
        return None
    if not state.steps_begun or state.current_state is FSMState.END:
        return None
    decision = blank(state, settings, key_of(given), skipped="fault")
    return remember_decision(
        state, given, replace(decision, gate_decision="final", stop=budget.REASON if used_up else "over_budget")
    )


def look_flow(state: TraceState, given: StepInput, settings: Settings) -> Flow[tuple[TraceState, StepDecision]]:
    """Assess the step that would end the run; return the decision for one more call if that is due, else the final.

    The facts are injected into that call regardless of the cap, the cooldown and earlier texts. A run that `stop_when`
    would end gets no such call, nor does one that has only one call left.
    """
    assessment = yield from assess(state, given.completed, settings)
    final = _final(state, assessment, settings)
    ended = record_assessment(state, assessment)
    if not (yield from _may_go_on(ended, final, settings, given.calls_left)):
        return ended, final
    look = yield from _look(ended, assessment, final, settings)
    if not look.told:
        return ended, replace(final, dropped=look.dropped)
    after = record_assessment(state, assessment)
    if look.doubt is not None:
        monitor = look.doubt.monitor
        after = with_injected(after, look.told[0], monitor, BY_NAME[monitor].failure_type)
    route = escalation.route(after, settings)
    decision = replace(
        final,
        key=key_of(given),
        gate_decision="inject",
        route=route,
        effort=escalation.effort(after, settings),
        placement=settings.look_placement,
        doubts=(),
    )
    told = replace(after, second_look=state.calls, looked_at=look.doubt, sent=())
    note = yield from next_note(told, settings)
    told, line = budget.tell_budget(told, settings, given.calls_left)
    moved, decision = finish_decision(
        told, given, decision, settings, look.told, dropped=look.dropped, note=note, budget_line=line
    )
    if look.told[0] not in decision.injections:  # it does not fit
        return ended, replace(final, dropped=decision.dropped)
    return replace(moved, sent=(*after.sent, *moved.sent)[-SENT_KEPT:]), decision


def _may_go_on(state: TraceState, decision: StepDecision, settings: Settings, calls_left: int | None) -> Flow[bool]:
    """Return True unless `stop_when` or the budget ends the run, or leaves one call, good for the same answer only."""
    reason = yield from reason_to_stop(state, decision, settings)
    return reason is None and budget.leaves_room(state, settings, calls_left)


def _final(state: TraceState, assessment: Assessment, settings: Settings) -> StepDecision:
    skipped = skipped_reason(assessment, settings, failed=False)
    decision = decision_for(state, assessment, settings, gate="final", skipped=skipped)
    return replace(decision, doubts=doubts_of(assessment) or _doubt_that_was_looked_at(state, assessment))


def _doubt_that_was_looked_at(state: TraceState, assessment: Assessment) -> tuple[Doubt, ...]:
    """Return the doubt of the second look if the agent only answered it: words do not settle it."""
    last, doubt = state.last, state.looked_at
    if last is None or last.step != state.second_look or assessment.step.tool_calls or doubt is None:
        return ()
    shown = render.monitor_injection(gates.first_sentence(doubt.text))
    return (replace(doubt, text=shown.text),) if shown else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The text of a second look (at most one), the doubt that it is about, and the sources of dropped texts."""

    told: tuple[Injection, ...] = ()
    doubt: Doubt | None = None
    dropped: tuple[Source, ...] = ()


def _look(state: TraceState, assessment: Assessment, decision: StepDecision, settings: Settings) -> Flow[_Look]:
    """Return the text about the end, if one is due and `on_injection` does not drop it."""
    found = assessment.evaluation.doubts if assessment.evaluation else ()
    doubt = next((doubt for doubt in found if is_due(doubt, settings.second_look)), None)
    if doubt is None and settings.second_look != "always":
        return _Look()
    step = state.steps_begun - 1
    text = render.monitor_injection(text_of_look(settings.task, assessment.work, doubt, assessment.account, step))
    told = None if text is None else (yield from review_injection(text, state, decision, settings))
    if told is None:
        return _Look(dropped=(text.source,) if text else ())
    return _Look(told=(told,), doubt=doubt)
