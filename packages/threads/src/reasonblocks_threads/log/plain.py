"""The plain JSON of each value: what a log and a head hold, and the checked way back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from reasonblocks.util.json import compact, is_number
from reasonblocks.util.text import whole

from ..phases import Phase, Stage
from ..values import Approval, Budget, Cause, Child, Evidence, Execution, Fact, Problem, Proposal, Report, Spent

JSON = dict[str, Any]
T = TypeVar("T")
E = TypeVar("E", Phase, Stage)

DEEPEST = 32
"""Levels of nested JSON."""
MOST = 2**53
"""The largest whole number; also the most that a cost may be, so that sums stay finite."""


class Malformed(ValueError):
    """Plain JSON that is not the value that it should be."""


def size(value: Any) -> int:
    """Return the bytes of a value of plain JSON."""
    return len(compact(value).encode("utf-8", "surrogatepass"))


def plain(value: object, name: str = "the data") -> JSON:
    """Return a copy of a mapping that has only what JSON keeps. Raises `Malformed` for anything else, such as NaN.

    Unpaired surrogates, which no store can hold, become question marks.
    """
    if _is_deep(value):
        raise Malformed(f"{name} is nested more than {DEEPEST} levels deep")
    try:
        found = json.loads(whole(json.dumps(value, allow_nan=False, ensure_ascii=False)))
    except (TypeError, ValueError, RecursionError) as exc:
        raise Malformed(f"{name} is no plain JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise Malformed(f"{name} is {_shown(value)}, not an object")
    return found


def _is_deep(value: object) -> bool:
    """Return True for nesting that later calls, deeper in the stack, might fail to encode."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level if isinstance(each, Mapping | list | tuple) for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()


def _shown(value: object) -> str:
    return repr(value)[:80]


def mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Malformed(f"{name} is {_shown(value)}, not an object")
    return value


def items(data: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list; a missing one is empty."""
    found = data.get(name)
    if found is None:
        return []
    if not isinstance(found, list | tuple):
        raise Malformed(f"{name} is {_shown(found)}, not a list")
    return list(found)


def text(data: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return a text. Raises `Malformed` if it is missing without a default, or no text."""
    found = data.get(name)
    if found is None and default is not None:
        return default
    if not isinstance(found, str):
        raise Malformed(f"{name} is {_shown(found)}, not a text")
    return found


def maybe_text(data: Mapping[str, Any], name: str) -> str | None:
    found = data.get(name)
    if found is not None and not isinstance(found, str):
        raise Malformed(f"{name} is {_shown(found)}, not a text")
    return found


def texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(text({name: each}, name) for each in items(data, name))


def number(data: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """Return a finite number. Raises `Malformed` if it is missing without a default, or no such number."""
    found = data.get(name, default)
    if not is_number(found):
        raise Malformed(f"{name} is {_shown(found)}, not a finite number")
    try:
        return float(found)
    except OverflowError as exc:
        raise Malformed(f"{name} is too large") from exc


def cost(data: Mapping[str, Any], name: str) -> float:
    """Return an amount of money, 0 if it is missing."""
    found = number(data, name, 0.0)
    if not 0.0 <= found <= MOST:
        raise Malformed(f"{name} is {found!r}; valid: from 0 to {MOST}")
    return found


def maybe_number(data: Mapping[str, Any], name: str) -> float | None:
    return None if data.get(name) is None else number(data, name)


def count(data: Mapping[str, Any], name: str, default: int = 0) -> int:
    """Return a whole number from 0 on that every JSON reader keeps exactly."""
    found = data.get(name, default)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MOST:
        raise Malformed(f"{name} is not a whole number from 0 to {MOST}")
    return found


def flag(data: Mapping[str, Any], name: str, default: bool = False) -> bool:
    found = data.get(name, default)
    if not isinstance(found, bool):
        raise Malformed(f"{name} is {_shown(found)}, not true or false")
    return found


def one_of(data: Mapping[str, Any], name: str, valid: tuple[T, ...], default: T | None = None) -> T:
    found = data.get(name, default)
    for each in valid:
        if each == found and type(each) is type(found):
            return each
    raise Malformed(f"{name} is {_shown(found)}; valid: {', '.join(map(str, valid))}")


def member(data: Mapping[str, Any], name: str, kind: type[E]) -> E:
    found = text(data, name)
    try:
        return kind(found)
    except ValueError:
        raise Malformed(f"{name} is {_shown(found)}; valid: {', '.join(each.value for each in kind)}") from None


def evidence_json(evidence: Evidence) -> JSON:
    found: JSON = {"id": evidence.id, "label": evidence.label, "text": evidence.text}
    if evidence.blob is not None:
        found["blob"] = evidence.blob
    if evidence.private:
        found["private"] = True
    return found


def evidence_of(value: object) -> Evidence:
    data = mapping(value, "evidence")
    return Evidence(
        id=text(data, "id"),
        label=text(data, "label", ""),
        text=text(data, "text", ""),
        blob=maybe_text(data, "blob"),
        private=flag(data, "private"),
    )


def cause_json(cause: Cause) -> JSON:
    return {
        "kind": cause.kind,
        "key": cause.key,
        "title": cause.title,
        "family": cause.family,
        "run_id": cause.run_id,
        "evidence": [evidence_json(each) for each in cause.evidence],
    }


def cause_of(value: object) -> Cause:
    data = mapping(value, "the cause")
    return Cause(
        kind=text(data, "kind"),
        key=text(data, "key"),
        title=text(data, "title"),
        family=maybe_text(data, "family"),
        run_id=maybe_text(data, "run_id"),
        evidence=tuple(map(evidence_of, items(data, "evidence"))),
    )


def proposal_json(proposal: Proposal) -> JSON:
    return {
        "id": proposal.id,
        "stage": proposal.stage.value,
        "body": dict(proposal.body),
        "confidence": proposal.confidence,
        "author": proposal.author,
        "refs": list(proposal.refs),
    }


def proposal_of(value: object) -> Proposal:
    """Return a proposal. A missing confidence is 0, which no gate passes; one that is no number is `Malformed`."""
    data = mapping(value, "the proposal")
    stage, body = member(data, "stage", Stage), plain(data.get("body"), "the proposal's body")
    _check_body(stage, body)
    confidence = 0.0 if data.get("confidence") is None else number(data, "confidence")
    if not 0.0 <= confidence <= 1.0:
        raise Malformed(f"the proposal's confidence is {confidence!r}; valid: 0 to 1")
    refs = items(data, "refs")
    if not all(isinstance(each, str) for each in refs):
        raise Malformed(f"the proposal's refs are {_shown(refs)}, not texts")
    author = text(data, "author", "agent")
    return Proposal(
        id=text(data, "id", ""), stage=stage, body=body, confidence=confidence, author=author, refs=tuple(refs)
    )


def _check_body(stage: Stage, body: JSON) -> None:
    if stage is not Stage.ACTION or "action" not in body:
        name = "question" if stage is Stage.ACTION else "text"
        if not text(body, name, "").strip():
            needed = "an action or a question" if stage is Stage.ACTION else "a text"
            raise Malformed(f"a proposal of the stage {stage.value!r} needs {needed}")
    else:
        text(body, "action")
        mapping(body.get("parameters", {}), "the action's parameters")
        if "question" in body:
            raise Malformed("a proposal names an action or asks a question, not both")


def fact_json(fact: Fact) -> JSON:
    return {"id": fact.id, "by": fact.by, "text": fact.text, "stage": fact.stage.value}


def fact_of(value: object) -> Fact:
    data = mapping(value, "the fact")
    return Fact(id=text(data, "id"), by=text(data, "by"), text=text(data, "text"), stage=member(data, "stage", Stage))


def report_json(report: Report) -> JSON:
    return {
        "succeeded": report.succeeded,
        "disposition": report.disposition,
        "summary": report.summary,
        "partial": report.partial,
        "code": report.code,
        "retryable": report.retryable,
        "to": report.to,
        "output": dict(report.output),
    }


def report_of(value: object) -> Report:
    data = mapping(value, "the report")
    dispositions: tuple[Literal["completed", "handed_off", "decomposed"], ...] = (
        "completed", "handed_off", "decomposed",
    )  # fmt: skip
    if "succeeded" not in data:
        raise Malformed("the report does not tell if it succeeded")
    return Report(
        succeeded=flag(data, "succeeded"),
        disposition=one_of(data, "disposition", dispositions, "completed"),
        summary=text(data, "summary", ""),
        partial=flag(data, "partial"),
        code=text(data, "code", ""),
        retryable=flag(data, "retryable"),
        to=text(data, "to", ""),
        output=plain(data.get("output", {}), "the report's output"),
    )


def blobs_of(value: object) -> Iterator[str]:
    """Yield the names of the private texts in plain JSON."""
    if isinstance(value, Mapping):
        if isinstance(name := value.get("blob"), str):
            yield name
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from blobs_of(each)


def approval_json(approval: Approval) -> JSON:
    return {
        "proposal": approval.proposal,
        "action": approval.action,
        "parameters": dict(approval.parameters),
        "hash": approval.hash,
        "by": approval.by,
        "auto": approval.auto,
    }


def approval_of(value: object) -> Approval:
    data = mapping(value, "the approval")
    return Approval(
        proposal=text(data, "proposal"),
        action=text(data, "action"),
        parameters=plain(data.get("parameters"), "the parameters"),
        hash=text(data, "hash"),
        by=text(data, "by"),
        auto=flag(data, "auto"),
    )


def execution_json(execution: Execution) -> JSON:
    return {
        "id": execution.id,
        "thread_id": execution.thread_id,
        "action": execution.action,
        "parameters": dict(execution.parameters),
        "hash": execution.hash,
        "org_id": execution.org_id,
        "run_id": execution.run_id,
        "started_at": execution.started_at,
        "deadline_at": execution.deadline_at,
        "cancel_requested": execution.cancel_requested,
        "report": None if execution.report is None else report_json(execution.report),
    }


def execution_of(value: object) -> Execution:
    data = mapping(value, "the execution")
    return Execution(
        id=text(data, "id"),
        thread_id=text(data, "thread_id"),
        action=text(data, "action"),
        parameters=plain(data.get("parameters"), "the parameters"),
        hash=text(data, "hash"),
        org_id=text(data, "org_id"),
        run_id=maybe_text(data, "run_id"),
        started_at=number(data, "started_at", 0.0),
        deadline_at=number(data, "deadline_at", 0.0),
        cancel_requested=flag(data, "cancel_requested"),
        report=None if data.get("report") is None else report_of(data["report"]),
    )


def problem_json(problem: Problem) -> JSON:
    return {"code": problem.code, "text": problem.text}


def problem_of(value: object) -> Problem:
    data = mapping(value, "the problem")
    return Problem(code=text(data, "code"), text=text(data, "text"))


def budget_json(budget: Budget) -> JSON:
    return {"calls": budget.calls, "tokens": budget.tokens, "usd": budget.usd}


def budget_of(value: object) -> Budget:
    data = mapping(value, "the budget")
    return Budget(calls=count(data, "calls"), tokens=count(data, "tokens"), usd=cost(data, "usd"))


def spent_json(spent: Spent) -> JSON:
    return {"calls": spent.calls, "tokens": spent.tokens, "usd": spent.usd, "newest": list(spent.newest)}


def spent_of(value: object) -> Spent:
    data = mapping(value, "the costs")
    newest = tuple(text({"call": each}, "call") for each in items(data, "newest"))
    return Spent(calls=count(data, "calls"), tokens=count(data, "tokens"), usd=cost(data, "usd"), newest=newest)


def child_json(child: Child) -> str:
    """Return a child as one text, because a head may have many: its id, and the phase in which it ended."""
    return child.id if child.ended is None else f"{child.id} {child.ended.value}"


def child_of(value: object) -> Child:
    found = text({"child": value}, "child")
    id, _, ended = found.partition(" ")
    return Child(id=id, ended=member({"phase": ended}, "phase", Phase) if ended else None)
