"""The commands that add to a thread's log without moving it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .. import codec
from ..codec import encode
from ..log.limits import SUMMARY_CHARS
from ..phases import Addition, Phase
from ..policy import looser_axes, policy_json, strictest
from ._children import checked_policy, newest, opening_of_children
from ._draft import Draft, shortened

DEFER_S = 365 * 86_400.0
"""The latest time to which a card can be deferred, in seconds from now."""
WHAT_CHARS = 120


def _children(draft: Draft) -> None:
    if draft.thread.phase is not Phase.MONITORING:
        raise draft.refused(
            f"only a thread that monitors its children can get another one; the phase of this one is "
            f"{draft.thread.phase.value!r}: open it with its children"
        )
    draft.add("children_opened", opening_of_children(draft))


def _evidence(draft: Draft) -> None:
    known = {*draft.thread.evidence}
    new = [each for each in newest(codec.evidence(draft.data, "items")) if each not in known]
    run = codec.run(draft.data, "run", draft.thread.run)
    if not new and run == draft.thread.run:
        return
    data: dict[str, object] = {"items": [encode(each) for each in new]}
    if run != draft.thread.run:
        data["run"] = run
    draft.add("evidence_added", data)


def _note(draft: Draft) -> None:
    draft.add("noted", {"text": draft.words("text", needed=True)})


def _defer(draft: Draft) -> None:
    until, now = codec.number(draft.data, "until"), draft.command.at
    if not draft.thread.phase.waits:
        raise draft.refused("no card is open, so there is nothing to put off")
    if not now < until <= now + DEFER_S:
        raise draft.refused(f"until is {until!r}; it must be after {now!r} and within a year")
    draft.add("deferred", {"until": until})


def _policy(draft: Draft) -> None:
    new, old = checked_policy(draft.data.get("policy")), draft.thread.policy
    if new == old:
        return
    loosened = looser_axes(new, old)
    if loosened and draft.command.actor.kind != "operator":
        raise draft.refused(f"only an operator may loosen a policy, and this one is looser in {', '.join(loosened)}")
    if loosened and draft.rules.ancestors:
        above = looser_axes(new, strictest(*draft.rules.ancestors))
        if both := [axis for axis in loosened if axis in above]:
            raise draft.refused(f"an ancestor's policy is stricter in {', '.join(both)}: loosen that one first")
    draft.add("policy_changed", {"policy": policy_json(new)})


def _cancel(draft: Draft) -> None:
    if draft.thread.phase is not Phase.EXECUTING:
        raise draft.refused(
            f"no action is running in the phase {draft.thread.phase.value!r}: dismiss the thread instead"
        )
    if draft.thread.execution is None or not draft.thread.execution.cancel_requested:
        draft.add("cancel_requested", {})


def _execution_started(draft: Draft) -> None:
    present, approved = draft.thread.execution, draft.thread.approved
    id, wanted = codec.text(draft.data, "execution"), codec.text(draft.data, "hash")
    if draft.thread.phase is not Phase.EXECUTING or present is None or present.id != id:
        raise draft.refused(f"{id!r} is not the present execution")
    if approved is None or wanted != approved.hash:
        raise draft.refused(f"the hash {wanted!r} is not the approved one")
    deadline_at = codec.number(draft.data, "deadline_at")
    if present.started_at:
        return
    if present.cancel_requested:
        raise draft.refused("it was cancelled before it began")
    parameters = dict(approved.parameters)
    draft.add(
        "execution_started",
        {
            "execution": id, "action": approved.action, "parameters": parameters, "hash": approved.hash,
            "deadline_at": deadline_at,
        },
    )  # fmt: skip


def _late_report(draft: Draft) -> None:
    detail = shortened(codec.words(draft.data, "detail"), SUMMARY_CHARS)
    data: dict[str, object] = {"what": shortened(codec.text(draft.data, "what"), WHAT_CHARS), "detail": detail}
    if (call := draft.call()) is not None:
        data["call"] = call
    draft.add("late_report", data)


def _work_dead(draft: Draft) -> None:
    found = {name: shortened(codec.words(draft.data, name), SUMMARY_CHARS) for name in ("work", "kind", "error")}
    draft.add("work_dead", {**found})


def _reconciled(draft: Draft) -> None:
    draft.add("reconciled", {"what": shortened(codec.text(draft.data, "what"), SUMMARY_CHARS)})


ADDITIONS: Mapping[Addition, Callable[[Draft], None]] = MappingProxyType(
    {
        Addition.CHILDREN: _children,
        Addition.EVIDENCE: _evidence,
        Addition.NOTE: _note,
        Addition.DEFER: _defer,
        Addition.POLICY: _policy,
        Addition.CANCEL: _cancel,
        Addition.EXECUTION_STARTED: _execution_started,
        Addition.LATE_REPORT: _late_report,
        Addition.WORK_DEAD: _work_dead,
        Addition.RECONCILED: _reconciled,
    }
)
"""The events of each addition to a thread that exists."""
AFTER_THE_END = frozenset({Addition.NOTE, Addition.LATE_REPORT, Addition.WORK_DEAD, Addition.RECONCILED})
"""The additions that a terminal thread takes."""
OF_A_PERSON = frozenset({Addition.DEFER})
OF_THE_SYSTEM = frozenset(
    {
        Addition.CHILDREN, Addition.EXECUTION_STARTED, Addition.LATE_REPORT, Addition.WORK_DEAD, Addition.RECONCILED,
    }
)  # fmt: skip
"""The additions that only the system writes; all others anybody."""
