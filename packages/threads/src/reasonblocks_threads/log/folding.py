"""The fold of a log: it alone derives where a thread is from its events, and is total."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from reasonblocks.util.text import cut_to_bytes

from .. import codec
from ..phases import STAGES, Phase, Stage, Trigger
from ..policy import policy_of
from ..table import CELLS
from ..values import (
    FORM,
    KINDS,
    NOTHING,
    Budget,
    Cause,
    Child,
    Execution,
    Fact,
    Malformed,
    Policy,
    Problem,
    Proposal,
    Spent,
    Thread,
    ThreadEvent,
)
from .limits import CALLS_KEPT, REASON_BYTES, REASON_CHARS, fact_size, limit_evidence

Changes: TypeAlias = dict[str, Any]
Data: TypeAlias = Mapping[str, Any]
Upcaster: TypeAlias = Callable[[Data], Data]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = MappingProxyType({})
"""By kind and form, the function that turns this form's data into the next form's; without one they are equal."""
_FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def fold(
    thread: Thread | None,
    event: ThreadEvent,
    *,
    upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS,
    newest: int = FORM,
) -> Thread:
    """Return the thread after one more event; it never raises.

    An event that it cannot understand makes the thread `unreadable`: it then stays where it is.
    """
    if thread is not None and thread.unreadable is not None:
        return replace(thread, version=event.seq)
    try:
        event = upcast(event, upcasters, newest)
        if thread is None:
            return _opened(event)
        if event.thread_id != thread.id or event.seq != thread.version + 1:
            raise Malformed(f"event {event.seq} of {event.thread_id} does not follow event {thread.version}")
        return replace(thread, version=event.seq, **_FOLDS[event.kind](thread, event, event.data))
    except _FAULTS as exc:
        why = f"event {event.seq}: {exc}"[:300]
        return replace(thread or _unopened(event), version=event.seq, unreadable=why)


def upcast(
    event: ThreadEvent, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS, newest: int = FORM
) -> ThreadEvent:
    """Return the event in the newest form. Raises ValueError for an unknown kind or a newer form."""
    if event.kind not in KINDS:
        raise ValueError(f"the kind {event.kind[:64]!r} of event {event.seq} is unknown to this version")
    if not 1 <= event.form <= newest:
        raise ValueError(f"event {event.seq} has the form {event.form}; this version reads 1 to {newest}")
    data: Data = event.data
    for form in range(event.form, newest):
        if change := upcasters.get((event.kind, form)):
            data = change(data)
    return event if event.form == newest else replace(event, form=newest, data=data)


def fold_all(events: Iterable[ThreadEvent]) -> Thread | None:
    """Return the thread of a log, None without events."""
    thread = None
    for event in events:
        thread = fold(thread, event)
    return thread


def _unopened(event: ThreadEvent) -> Thread:
    """Return the stand-in for a thread whose first event cannot be read."""
    return Thread(
        id=event.thread_id, org_id="", cause=Cause(kind="", key="", title=""), phase=Phase.PROPOSED,
        stage=Stage.INTENT, version=event.seq, entered=event.seq, entered_at=event.at, opened_at=event.at,
        policy=policy_of(None),
    )  # fmt: skip


def _opened(event: ThreadEvent) -> Thread:
    data = event.data
    if event.kind != "thread_opened" or event.seq != 1:
        raise Malformed(f"the log begins with {event.kind} as event {event.seq}, not with thread_opened as event 1")
    cause = codec.cause(data, "cause")
    evidence, used = limit_evidence((), cause.evidence, 0, 0)
    proposals = {each.stage: each for each in codec.proposals(data, "proposals")}
    return Thread(
        id=event.thread_id, org_id=codec.text(data, "org_id"), cause=replace(cause, evidence=()), phase=Phase.PROPOSED,
        stage=Stage.INTENT, version=1, entered=1, entered_at=event.at, opened_at=event.at,
        policy=_policy(data), run=codec.run(data, "run", "unknown"), evidence=evidence, evidence_bytes=used,
        proposals=proposals, parent=codec.maybe_text(data, "parent"),
        ancestors=codec.texts(data, "ancestors"), rule=codec.rule(data, "rule", "all_of"),
        follows=codec.maybe_text(data, "follows"),
    )  # fmt: skip


def _policy(data: Data) -> Policy:
    return policy_of(codec.mapping(data, "policy"))


def _phase_changed(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    phase, trigger = codec.phase(data, "to"), codec.text(data, "trigger")
    allowed = CELLS.get((thread.phase, Trigger(trigger)), ())
    if data.get("from") != thread.phase.value or phase not in allowed:
        raise Malformed(
            f"it moves from {data.get('from')!r} to {phase.value!r}, but the thread is {thread.phase.value!r}"
        )
    changes: Changes = {
        "phase": phase,
        "stage": codec.stage(data, "stage"),
        "entered": event.seq,
        "entered_at": event.at,
        "reason": cut_to_bytes(codec.words(data, "reason")[:REASON_CHARS], REASON_BYTES),
        "deferred_until": None,
    }
    if phase is Phase.EXECUTING:
        changes["execution"] = _pending(thread, event)
    return changes


def _pending(thread: Thread, event: ThreadEvent) -> Execution:
    """Return the execution of the approved action, which nobody has started."""
    if (approved := thread.approved) is None:
        raise Malformed("it executes what nobody approved")
    return Execution(
        id=f"{thread.id}.x{event.seq}", thread_id=thread.id, action=approved.action, parameters=approved.parameters,
        hash=approved.hash, org_id=thread.org_id, run_id=thread.cause.run_id,
    )  # fmt: skip


def _evidence_added(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    new = codec.evidence(data, "items")
    evidence, used = limit_evidence(thread.evidence, new, thread.evidence_bytes, thread.facts_bytes)
    return {"evidence": evidence, "evidence_bytes": used, "run": codec.run(data, "run", thread.run)}


def _policy_changed(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {"policy": _policy(data)}


def _deferred(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {"deferred_until": codec.number(data, "until")}


def _nothing(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {}


def _inferred(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    proposal = codec.proposal(data, "proposal")
    if event.kind != f"{proposal.stage.value}_inferred":
        raise Malformed(f"{event.kind} has a proposal of the stage {proposal.stage.value!r}")
    changes: Changes = {"proposals": {**thread.proposals, proposal.stage: proposal}, **_spent(thread, data)}
    if codec.flag(data, "ahead", False):
        return changes
    if thread.last is not None and thread.last.stage is proposal.stage:
        changes["last"] = None
    report = thread.execution.report if thread.execution else None
    if proposal.stage is Stage.ACTION or report is None or report.succeeded:
        changes["problem"] = None
    return changes


def _spent(thread: Thread, data: Data) -> Changes:
    """Return the costs with a call's, if it is not booked yet."""
    if data.get("call") is None:
        return {}
    call, spent = codec.mapping(data, "call"), thread.spent
    id = codec.text(call, "id")
    if id in spent.newest:
        return {}
    tokens, usd = codec.count(call, "tokens", 0), codec.cost(call, "usd", 0.0)
    return {
        "spent": Spent(
            calls=spent.calls + codec.count(call, "calls", 1),
            tokens=spent.tokens + tokens,
            usd=spent.usd + usd,
            newest=(*spent.newest, id)[-CALLS_KEPT:],
        )
    }


def _failed(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    problem = Problem(code=codec.text(data, "code"), text=codec.words(data, "detail"))
    return {"problem": problem, **_spent(thread, data)}


def _from(thread: Thread, stage: Stage) -> tuple[dict[Stage, Proposal], Proposal | None]:
    """Return the proposals before a stage, and the one of the stage that falls."""
    kept = {each: thread.proposals[each] for each in STAGES[: STAGES.index(stage)] if each in thread.proposals}
    return kept, thread.proposals.get(stage, thread.last)


def _dropped(thread: Thread, stage: Stage) -> Changes:
    kept, last = _from(thread, stage)
    return {"proposals": kept, "last": last, "approved": None}


def _said(thread: Thread, event: ThreadEvent, words: str, stage: Stage) -> Changes:
    """Return the facts with a person's words, which older evidence gives way to."""
    if not words:
        return {}
    fact = Fact(id=f"{thread.id}.f{event.seq}", by=event.actor.name, text=words, stage=stage)
    facts_bytes = thread.facts_bytes + fact_size(fact)
    evidence, used = limit_evidence(thread.evidence, (), thread.evidence_bytes, facts_bytes)
    return {
        "facts": (*thread.facts, fact), "facts_bytes": facts_bytes, "evidence": evidence, "evidence_bytes": used,
    }  # fmt: skip


def _corrected(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    proposal = codec.proposal(data, "proposal")
    kept, _ = _from(thread, proposal.stage)
    said = _said(thread, event, codec.words(data, "text"), proposal.stage)
    return {"proposals": {**kept, proposal.stage: proposal}, "last": None, **said}


def _provided(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    stage = codec.stage(data, "stage")
    return {**_dropped(thread, stage), **_said(thread, event, codec.text(data, "text"), stage)}


def _picked(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    proposal = codec.proposal(data, "proposal")
    return {"proposals": {**thread.proposals, proposal.stage: proposal}, "last": None, "problem": None}


def _redirected(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    stage = codec.stage(data, "redirect_to")
    said = _said(thread, event, redirect_words(codec.words(data, "feedback"), data.get("keep")), stage)
    return {**_dropped(thread, stage), **said, "redirects": thread.redirects + 1}


def redirect_words(feedback: str, keep: object) -> str:
    """Return what a redirect tells the next inference, as one text."""
    if not keep:
        return feedback
    kept = f"keep: {json.dumps(keep, ensure_ascii=False, sort_keys=True)}"
    return f"{feedback} ({kept})" if feedback else kept


def _approved(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {"approved": codec.approval.of(data, "the approval"), "problem": None}


def _current(thread: Thread, data: Data) -> Execution:
    id = codec.text(data, "execution")
    if thread.execution is None or thread.execution.id != id:
        raise Malformed(f"{id!r} is not the present execution")
    return thread.execution


def _execution_started(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    deadline_at = codec.number(data, "deadline_at")
    started = replace(_current(thread, data), started_at=event.at, deadline_at=deadline_at)
    return {"execution": started, "attempt": thread.attempt + 1}


def _execution_finished(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    report = codec.report(data, "report")
    changes: Changes = {"execution": replace(_current(thread, data), report=report)}
    if not report.succeeded:
        changes["problem"] = Problem(code=report.code or "failed", text=report.summary)
    return changes


def _cancel_requested(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {"execution": replace(thread.execution, cancel_requested=True)} if thread.execution else {}


def _late_report(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return _spent(thread, data)


def _children_opened(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    new = tuple(Child(id=codec.text(each, "id")) for each in codec.mappings(data, "children"))
    more = codec.carved(data, "budget", NOTHING)
    had = thread.carved
    carved = Budget(calls=had.calls + more.calls, tokens=had.tokens + more.tokens, usd=had.usd + more.usd)
    return {
        "children": (*thread.children, *new), "rule": codec.rule(data, "rule", thread.rule), "carved": carved,
    }  # fmt: skip


def _child_ended(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    id, phase = codec.text(data, "child"), codec.phase(data, "phase")
    if all(child.id != id for child in thread.children):
        raise Malformed(f"{id!r} is no child of this thread")
    return {"children": tuple(replace(each, ended=phase) if each.id == id else each for each in thread.children)}


def _cleaned_up(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {"problem": None}


def _cleanup_failed(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    return {"problem": Problem(code="cleanup_failed", text=codec.words(data, "detail"))}


def _again(thread: Thread, event: ThreadEvent, data: Data) -> Changes:
    raise Malformed("the thread is open already")


_FOLDS: Mapping[str, Callable[[Thread, ThreadEvent, Data], Changes]] = MappingProxyType(
    {
        "thread_opened": _again,
        "phase_changed": _phase_changed,
        "evidence_added": _evidence_added,
        "policy_changed": _policy_changed,
        "deferred": _deferred,
        "noted": _nothing,
        "intent_inferred": _inferred,
        "context_inferred": _inferred,
        "action_inferred": _inferred,
        "inference_started": _nothing,
        "inference_failed": _failed,
        "inference_rejected": _failed,
        "gate_judged": _nothing,
        "confirmed": _nothing,
        "corrected": _corrected,
        "provided": _provided,
        "picked": _picked,
        "redirected": _redirected,
        "action_approved": _approved,
        "action_rejected": _nothing,
        "review_accepted": _nothing,
        "execution_started": _execution_started,
        "execution_finished": _execution_finished,
        "cancel_requested": _cancel_requested,
        "late_report": _late_report,
        "children_opened": _children_opened,
        "child_ended": _child_ended,
        "force_closed": _nothing,
        "source_cleaned_up": _cleaned_up,
        "cleanup_failed": _cleanup_failed,
        "work_dead": _nothing,
        "reconciled": _nothing,
    }
)
"""The change that each kind of event makes."""
