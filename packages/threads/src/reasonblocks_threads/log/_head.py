"""The stored forms of heads and events, and the ids of threads."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Literal, get_args

from reasonblocks.util.json import compact

from ..phases import Phase, Stage
from ..policy import policy_json, policy_of
from ..values import Actor, Spent, Thread, ThreadEvent
from .folding import FOLD_VERSION, RULES, RUNS
from .plain import (
    JSON,
    Malformed,
    approval_json,
    approval_of,
    budget_json,
    budget_of,
    cause_json,
    cause_of,
    child_json,
    child_of,
    count,
    evidence_json,
    evidence_of,
    execution_json,
    execution_of,
    fact_json,
    fact_of,
    items,
    mapping,
    maybe_number,
    maybe_text,
    member,
    number,
    one_of,
    problem_json,
    problem_of,
    proposal_json,
    proposal_of,
    spent_json,
    spent_of,
    text,
    texts,
)

ACTORS: tuple[Literal["person", "operator", "agent", "system"], ...] = get_args(
    Literal["person", "operator", "agent", "system"]
)
_ID_CHARS = 20


def thread_id_of(org_id: str, key: str) -> str:
    """Return the id of the thread of a key: the same in every process."""
    canonical = json.dumps([org_id, key], ensure_ascii=False, separators=(",", ":"))
    return f"th_{sha256(canonical.encode('utf-8', 'surrogatepass')).hexdigest()[:_ID_CHARS]}"


def head_json(thread: Thread) -> str:
    """Return the head as compact JSON, of at most 32 KB."""
    return compact(_head(thread))


def _head(thread: Thread) -> JSON:
    head: JSON = {
        "fold": FOLD_VERSION,
        "id": thread.id,
        "org_id": thread.org_id,
        "cause": cause_json(thread.cause),
        "phase": thread.phase.value,
        "stage": thread.stage.value,
        "version": thread.version,
        "entered": thread.entered,
        "entered_at": thread.entered_at,
        "opened_at": thread.opened_at,
        "policy": policy_json(thread.policy),
        "run": thread.run,
        "rule": thread.rule,
        "proposals": [proposal_json(each) for each in thread.proposals.values()],
        "spent": spent_json(thread.spent),
        "carved": budget_json(thread.carved),
        "reason": thread.reason,
        "redirects": thread.redirects,
        "attempt": thread.attempt,
        "facts_bytes": thread.facts_bytes,
        "evidence_bytes": thread.evidence_bytes,
        "facts": [fact_json(each) for each in thread.facts],
        "evidence": [evidence_json(each) for each in thread.evidence],
        "ancestors": list(thread.ancestors),
        "children": [child_json(each) for each in thread.children],
        "parent": thread.parent,
        "follows": thread.follows,
        "deferred_until": thread.deferred_until,
        "unreadable": thread.unreadable,
        "problem": thread.problem and problem_json(thread.problem),
        "last": thread.last and proposal_json(thread.last),
        "approved": thread.approved and approval_json(thread.approved),
        "execution": _execution(thread),
    }
    return {name: value for name, value in head.items() if value is not None and value != []}


def _execution(thread: Thread) -> JSON | None:
    """Return the execution, without its parameters if they are the approved ones."""
    if thread.execution is None:
        return None
    data, approved = execution_json(thread.execution), thread.approved
    if approved is not None and approved.parameters == thread.execution.parameters:
        del data["parameters"]
    return data


def head_of(stored: str) -> Thread:
    """Return the thread of a stored head. Raises ValueError for one of another fold version: fold its log anew."""
    try:
        data = mapping(json.loads(stored), "the head")
    except RecursionError as exc:
        raise Malformed("the head is nested too deeply") from exc
    if data.get("fold") != FOLD_VERSION:
        raise Malformed(f"the head is of the fold version {data.get('fold')!r}, not {FOLD_VERSION}")
    if not text(data, "id"):
        raise Malformed("the head has no id")
    approved = None if data.get("approved") is None else approval_of(data["approved"])
    execution = data.get("execution")
    if isinstance(execution, dict) and "parameters" not in execution and approved:
        execution = {**execution, "parameters": approved.parameters}
    return Thread(
        id=text(data, "id"), org_id=text(data, "org_id"), cause=cause_of(data.get("cause")),
        phase=member(data, "phase", Phase), stage=member(data, "stage", Stage),
        version=count(data, "version"), entered=count(data, "entered"), entered_at=number(data, "entered_at"),
        opened_at=number(data, "opened_at"), policy=policy_of(data.get("policy")),
        run=one_of(data, "run", RUNS, "unknown"), facts=tuple(map(fact_of, items(data, "facts"))),
        evidence=tuple(map(evidence_of, items(data, "evidence"))),
        proposals={each.stage: each for each in map(proposal_of, items(data, "proposals"))},
        approved=approved, execution=None if execution is None else execution_of(execution),
        spent=spent_of(data["spent"]) if "spent" in data else Spent(), parent=maybe_text(data, "parent"),
        ancestors=texts(data, "ancestors"), children=tuple(map(child_of, items(data, "children"))),
        rule=one_of(data, "rule", RULES, "all_of"),
        problem=None if data.get("problem") is None else problem_of(data["problem"]),
        follows=maybe_text(data, "follows"), reason=text(data, "reason", ""), redirects=count(data, "redirects"),
        last=None if data.get("last") is None else proposal_of(data["last"]),
        deferred_until=maybe_number(data, "deferred_until"), attempt=count(data, "attempt"),
        carved=budget_of(data.get("carved", {})), facts_bytes=count(data, "facts_bytes"),
        evidence_bytes=count(data, "evidence_bytes"), unreadable=maybe_text(data, "unreadable"),
    )  # fmt: skip


def event_json(event: ThreadEvent) -> str:
    """Return the event as compact JSON."""
    data: JSON = {
        "thread_id": event.thread_id,
        "seq": event.seq,
        "kind": event.kind,
        "form": event.form,
        "actor": {"kind": event.actor.kind, "name": event.actor.name},
        "at": event.at,
        "data": dict(event.data),
        "command_id": event.command_id,
        "caused_by": event.caused_by,
        "position": event.position,
    }
    return compact(data)


def event_of(stored: str) -> ThreadEvent:
    """Return the event of its JSON, whatever its kind and form. Raises ValueError for anything else."""
    data = mapping(json.loads(stored), "the event")
    actor = mapping(data.get("actor"), "the actor")
    return ThreadEvent(
        thread_id=text(data, "thread_id"), seq=count(data, "seq"), kind=text(data, "kind"),
        form=count(data, "form", 1), actor=Actor(kind=one_of(actor, "kind", ACTORS), name=text(actor, "name")),
        at=number(data, "at"), data=mapping(data.get("data"), "the data"), command_id=text(data, "command_id"),
        caused_by=maybe_text(data, "caused_by"),
        position=None if data.get("position") is None else count(data, "position"),
    )  # fmt: skip
