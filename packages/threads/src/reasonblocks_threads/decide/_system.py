"""The system's commands: the guards *start*, *clarify*, *advance*, *review* and *children* as events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from .. import codec
from ..catalogue import ActionSpec, Bound
from ..codec import encode, size
from ..log.limits import (
    OUTPUT_BYTES,
    PERSON_BYTES,
    PERSON_CHARS,
    SUMMARY_BYTES,
    SUMMARY_CHARS,
)
from ..phases import STAGES, Phase, Stage, Trigger, clarification, inferring
from ..policy import judge
from ..values import GRADES, EventKind, Execution, Grade, Proposal, Report
from ._children import opening_of_children
from ._draft import Draft, clean, shortened, usable
from ._person import after, approve

BY_POLICY = "policy"
"""The approver of an action that nobody was asked about."""
CODE_CHARS = 60
_INFERRED: Mapping[Stage, EventKind] = {
    Stage.INTENT: "intent_inferred", Stage.CONTEXT: "context_inferred", Stage.ACTION: "action_inferred",
}  # fmt: skip


def _begin_inference(draft: Draft) -> None:
    draft.move(Phase.AWAITING_INFERENCE, stage=Stage.INTENT)


def _decomposed(draft: Draft) -> None:
    draft.add("children_opened", opening_of_children(draft))
    draft.move(Phase.MONITORING)


def _inference_started(draft: Draft) -> None:
    stage = draft.thread.stage
    spent = draft.rules.exhausted(draft.thread)
    if spent and stage not in draft.thread.proposals:
        raise draft.refused(f"{spent}: submit inference_rejected")
    draft.add("inference_started", {"work": draft.words("work", needed=True), "stage": stage.value})
    draft.move(inferring(stage))


def _inference_rejected(draft: Draft) -> None:
    draft.add("inference_rejected", _problem(draft, "rejected"))
    draft.move(clarification(draft.thread.stage))


def _inference_failed(draft: Draft) -> None:
    draft.add("inference_failed", {**_problem(draft, "failed"), "call": draft.call()})
    draft.move(clarification(draft.thread.stage))


def _problem(draft: Draft, code: str) -> dict[str, object]:
    detail = shortened(codec.words(draft.data, "detail"), 300, 600)
    return {"code": shortened(codec.words(draft.data, "code") or code, CODE_CHARS, CODE_CHARS), "detail": detail}


def _inference_done(draft: Draft) -> None:
    """Judge the proposal of the present stage; those of later stages are stored."""
    proposals, call, stage = _proposals(draft), draft.call(), draft.thread.stage
    stored = codec.flag(draft.data, "stored", False)
    proposal = proposals.pop(stage)
    draft.add(
        _INFERRED[stage],
        {"proposal": encode(proposal), "call": call, "stored": stored, "ahead": False},
    )
    for later in STAGES[STAGES.index(stage) + 1 :]:
        if later in proposals:
            ahead = replace(proposals[later], id=draft.proposal_id())
            data = {"proposal": encode(ahead), "call": None, "stored": False, "ahead": True}
            draft.add(_INFERRED[later], data)
    if proposal.question is not None:
        draft.move(Phase.AWAITING_ACTION_CLARIFICATION)
    elif stage is Stage.ACTION:
        _advance_action(draft, proposal)
    else:
        _advance(draft, proposal)


def _proposals(draft: Draft) -> dict[Stage, Proposal]:
    """Return the command's proposals by stage, or the stored one. Raises `Refused` without one of the present stage."""
    stage = draft.thread.stage
    if codec.flag(draft.data, "stored", False):
        if draft.data.get("call") is not None:
            raise draft.refused("a stored proposal has no call")
        if stage not in draft.thread.proposals:
            raise draft.refused(f"no proposal of the stage {stage.value!r} is stored: infer one")
        return {stage: draft.thread.proposals[stage]}
    given = [usable(each) for each in codec.proposals(draft.data, "proposals")]
    found = {each.stage: each for each in given}
    if stage not in found or len(found) < len(given):
        listed = ", ".join(each.stage.value for each in given) or "none"
        raise draft.refused(
            f"it needs one proposal of the stage {stage.value!r}, and at most one of others; got {listed}"
        )
    return {**found, stage: replace(found[stage], id=draft.proposal_id())}


def _advance(draft: Draft, proposal: Proposal) -> None:
    stage = draft.thread.stage
    if _passes(draft, proposal):
        draft.move(Phase.AWAITING_INFERENCE, stage=after(stage))
    else:
        draft.move(Phase(f"awaiting_{stage.value}_confirmation"))


def _advance_action(draft: Draft, proposal: Proposal) -> None:
    bound = draft.bind(proposal.body.get("action"), proposal.body.get("parameters", {}))
    spec = bound.spec if isinstance(bound, Bound) and bound.checked else None
    if _passes(draft, proposal, spec=spec) and isinstance(bound, Bound):
        approve(draft, proposal, bound, by=BY_POLICY, auto=True)
        draft.move(Phase.EXECUTING)
    else:
        draft.move(Phase.AWAITING_CONFIRMATION)


def _passes(draft: Draft, proposal: Proposal, *, spec: ActionSpec | None = None) -> bool:
    """Judge every gate and log the judgement; nobody needs to be asked if all pass."""
    policy, stage = draft.rules.in_force(draft.thread), draft.thread.stage
    found = draft.data.get("preconditions")
    preconditions = (
        tuple(codec.mapping.of(each, "a precondition") for each in found) if isinstance(found, list | tuple) else None
    )
    results = judge(stage, proposal, policy, spec=spec, preconditions=preconditions)
    passed = all(each.passed for each in results)
    gates = [
        {"gate": each.gate, "passed": each.passed, "value": clean(each.value), "limit": clean(each.limit)}
        for each in results
    ]
    draft.add("gate_judged", {"stage": stage.value, "passed": passed, "gates": gates})
    return passed


def _execution(draft: Draft) -> tuple[Execution, Report]:
    """Return the present execution with the report on it, within the limits."""
    present, id = draft.thread.execution, codec.text(draft.data, "execution")
    if present is None or present.id != id:
        raise draft.refused(f"{id!r} is not the present execution: submit late_report")
    report = codec.report(draft.data, "report")
    output = report.output if size(report.output) <= OUTPUT_BYTES else {"cut": True}
    return present, replace(
        report, summary=shortened(report.summary, SUMMARY_CHARS, SUMMARY_BYTES), output=output,
        code=shortened(report.code, CODE_CHARS, CODE_CHARS), to=shortened(report.to, PERSON_CHARS, PERSON_BYTES),
    )  # fmt: skip


def _finish(draft: Draft, execution: Execution, report: Report) -> None:
    draft.add("execution_finished", {"execution": execution.id, "report": encode(report)})


def _execution_done(draft: Draft) -> None:
    if draft.thread.phase is Phase.MONITORING:
        _child_ended(draft)
        return
    execution, report = _execution(draft)
    if not report.succeeded:
        raise draft.refused("it reports a failure: submit execution_failed")
    if not execution.started_at:
        raise draft.refused(f"the execution {execution.id!r} was not started")
    _finish(draft, execution, report)
    if report.disposition == "handed_off":
        draft.move(Phase.HANDED_OFF, reason=f"handed to {report.to}" if report.to else "handed off")
    elif report.disposition == "decomposed":
        draft.add("children_opened", opening_of_children(draft))
        draft.move(Phase.MONITORING)
    else:
        reviewed = _is_reviewed(draft, execution, report)
        draft.move(Phase.AWAITING_REVIEW if reviewed else Phase.DONE, reason=report.summary)


def _is_reviewed(draft: Draft, execution: Execution, report: Report) -> bool:
    spec = draft.rules.catalogue.specs.get(execution.action)
    if spec is None or spec.review or report.partial:
        return True
    limit = draft.rules.in_force(draft.thread).review_above
    return _worse(spec.risk.irreversibility, limit)


def _worse(grade: Grade, limit: Grade) -> bool:
    """Return True for a grade above the limit, and for one that compares with nothing."""
    return grade not in GRADES or limit not in GRADES or GRADES.index(grade) > GRADES.index(limit)


def _child_ended(draft: Draft) -> None:
    """Book a child's end; with the last one this thread ends, too."""
    id, phase = codec.text(draft.data, "child"), codec.phase(draft.data, "phase")
    known = {child.id: child.ended for child in draft.thread.children}
    if id not in known or not phase.is_terminal:
        raise draft.refused(f"{id!r} is not a child that ended as {phase.value!r}")
    if known[id] is None:
        draft.add("child_ended", {"child": id, "phase": phase.value})
        known[id] = phase
    if all(known.values()):
        dismissed = draft.thread.rule == "alternatives" and set(known.values()) == {Phase.DISMISSED}
        draft.move(Phase.DISMISSED if dismissed else Phase.DONE, reason="its children ended")


def _execution_failed(draft: Draft) -> None:
    execution, report = _execution(draft)
    if report.succeeded:
        raise draft.refused("it reports a success: submit execution_done")
    _finish(draft, execution, report)
    draft.move(Phase.AWAITING_REDIRECT, reason=report.code)


def _cleanup_succeeded(draft: Draft) -> None:
    gone = codec.flag(draft.data, "already_gone", False)
    draft.add("source_cleaned_up", {"detail": _detail(draft), "already_gone": gone})
    draft.move(Phase.DONE_CLEANUP_SUCCESSFUL)


def _cleanup_failed(draft: Draft) -> None:
    draft.add("cleanup_failed", {"detail": _detail(draft)})
    draft.move(Phase.DONE_CLEANUP_UNSUCCESSFUL)


def _detail(draft: Draft) -> str:
    return shortened(codec.words(draft.data, "detail"), 300, 600)


def _parent_force_close(draft: Draft) -> None:
    if draft.thread.phase is Phase.EXECUTING:
        draft.add("cancel_requested", {})
    draft.add("force_closed", {"by": shortened(codec.words(draft.data, "by"), PERSON_CHARS)})
    draft.move(Phase.DISMISSED, reason="closed with its parent")


def _source_resolved(draft: Draft) -> None:
    draft.move(Phase.DISMISSED, reason=codec.words(draft.data, "reason") or "resolved")


def _timeout(draft: Draft) -> None:
    phase, stage = draft.thread.phase, draft.thread.stage
    if phase is Phase.AWAITING_INFERENCE:
        draft.add("inference_failed", _timed_out("no_worker", "nobody began the inference in time"))
        to = clarification(stage)
    elif phase in map(inferring, STAGES):
        draft.add("inference_failed", _timed_out("timeout", "the inference took too long"))
        to = clarification(stage)
    elif phase is Phase.EXECUTING:
        to = _execution_timed_out(draft)
    elif phase is Phase.AWAITING_REVIEW:
        draft.add("review_accepted", {"auto": True})
        to = Phase.DONE
    elif phase is Phase.CLEANING_UP:
        draft.add("cleanup_failed", {"detail": "the clean-up took too long"})
        to = Phase.DONE_CLEANUP_UNSUCCESSFUL
    else:
        to = Phase.DISMISSED
    draft.move(to, reason="timeout")


def _timed_out(code: str, detail: str) -> dict[str, object]:
    return {"code": code, "detail": detail, "call": None}


def _execution_timed_out(draft: Draft) -> Phase:
    if (execution := draft.thread.execution) is not None:
        started = Report.failed(
            "it was started, but reported no result in time: it may have acted", code="outcome_unknown"
        )
        unstarted = Report.failed("nobody started it in time: it has not acted", code="not_started")
        _finish(draft, execution, started if execution.started_at else unstarted)
    return Phase.AWAITING_REDIRECT


MOVES: Mapping[Trigger, Callable[[Draft], None]] = MappingProxyType(
    {
        Trigger.BEGIN_INFERENCE: _begin_inference,
        Trigger.DECOMPOSED: _decomposed,
        Trigger.TIMEOUT: _timeout,
        Trigger.INFERENCE_STARTED: _inference_started,
        Trigger.INFERENCE_REJECTED: _inference_rejected,
        Trigger.INFERENCE_DONE: _inference_done,
        Trigger.INFERENCE_FAILED: _inference_failed,
        Trigger.EXECUTION_DONE: _execution_done,
        Trigger.EXECUTION_FAILED: _execution_failed,
        Trigger.CLEANUP_SUCCEEDED: _cleanup_succeeded,
        Trigger.CLEANUP_FAILED: _cleanup_failed,
        Trigger.PARENT_FORCE_CLOSE: _parent_force_close,
        Trigger.SOURCE_RESOLVED: _source_resolved,
    }
)
"""The events of each of the system's triggers, once the table has its cell."""
