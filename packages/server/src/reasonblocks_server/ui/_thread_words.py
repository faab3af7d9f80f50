"""Describes in plain words the phase of a thread, the question of its card, and the lines of its log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from reasonblocks.util.folding import visible
from reasonblocks.util.text import count_noun

from ._words import moment

if TYPE_CHECKING:
    from reasonblocks_threads import ThreadEvent

Data: TypeAlias = Mapping[str, Any]

QUESTIONS: Mapping[str, str] = {
    "confirmation": "Is this right?",
    "clarification": "Something is missing",
    "consent": "May this run?",
    "review": "Is the outcome right?",
    "redirect": "The action did not report success. What next?",
    "cleanup_failure": "The clean-up failed",
}
"""The question of each kind of card."""
PHASES: Mapping[str, str] = {
    "proposed": "about to begin",
    "awaiting_inference": "waits for a proposal",
    "inferring_intent": "its intent is being inferred",
    "inferring_context": "its context is being inferred",
    "inferring_action": "its action is being inferred",
    "awaiting_intent_confirmation": "waits for a person: is the intent right?",
    "awaiting_context_confirmation": "waits for a person: is the context right?",
    "awaiting_intent_clarification": "waits for a person: the intent is unclear",
    "awaiting_context_clarification": "waits for a person: the context is unclear",
    "awaiting_action_clarification": "waits for a person: the action is unclear",
    "awaiting_confirmation": "waits for a person: may the action run?",
    "executing": "its action runs or is about to run",
    "awaiting_review": "waits for a person: is the outcome right?",
    "awaiting_redirect": "waits for a person: the action did not report success",
    "monitoring": "waits for its parts",
    "cleaning_up": "is being cleaned up",
    "done_cleanup_unsuccessful": "waits for a person: the clean-up failed",
    "done": "done",
    "dismissed": "dismissed",
    "handed_off": "handed over",
    "done_cleanup_successful": "cleaned up",
}
"""The state of a thread, by its phase."""
ANSWERS: Mapping[str, str] = {
    "accept": "accepted the proposal",
    "edit": "corrected the proposal",
    "redirect": "asked again",
    "provide": "gave what was missing",
    "skip": "dropped the matter",
    "approve": "approved the action",
    "reject": "rejected the action",
    "done": "accepted the outcome",
    "drop": "closed the matter without accepting the outcome",
    "retry": "retried the clean-up",
    "accept_failure": "accepted the failed clean-up",
    "take_over": "handed the matter over",
    "dismiss": "closed the matter",
    "clean_up": "requested the clean-up",
    "later": "put the card off",
}
"""The deed of a person, by the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something that happened, with somebody's own words about it."""

    what: str
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The lines of a log that one command has written."""

    at: float
    who: str
    said: tuple[Said, ...]


def entries_of(events: Iterable[ThreadEvent]) -> list[Entry]:
    """Return a log in plain words, with an entry for each command.

    The start of an inference and phases without a person are omitted, except at the end of the log.
    """
    written = [list(each) for _, each in groupby(events, key=lambda event: event.command_id)]
    shown = [[event for event in each if not _only_leads_on(event)] for each in written]
    return [_entry(each) for each in (*shown[:-1], *([shown[-1] or written[-1]] if written else ())) if each]


def _only_leads_on(event: ThreadEvent) -> bool:
    return event.kind == "inference_started" or (event.kind == "phase_changed" and _text(event.data, "to") in _PASSING)


def _entry(events: Sequence[ThreadEvent]) -> Entry:
    """Return one entry, with the same words once."""
    actor, said, words = events[0].actor, list[Said](), set[str]()
    for one in map(said_of, events):
        said.append(Said(what=one.what) if one.words in words else one)
        words.add(one.words)
    return Entry(at=events[0].at, who=_who(actor.kind, actor.name), said=tuple(said))


def said_of(event: ThreadEvent) -> Said:
    """Return an event in plain words. It is total: an event of a newer version has its kind."""
    known = _SAID.get(event.kind)
    return known(event.data) if known else Said(what=f"wrote something that only a newer version knows: {event.kind}")


def exact(value: object) -> str:
    """Return a value of a parameter as JSON, with escapes for all invisible characters."""
    return _escaped(json.dumps(value, ensure_ascii=False, default=str))


def readable(value: object) -> str:
    """Return the same, but a text of several lines as these, unquoted, with the escapes of JSON in them."""
    if isinstance(value, str) and "\n" in value:
        return _escaped(value.replace("\\", "\\\\"))
    return exact(value)


def _escaped(text: str) -> str:
    return text if visible(text) == text else "".join(char if visible(char) else _escape(char) for char in text)


def _escape(char: str) -> str:
    found = json.dumps(char)[1:-1]
    return found if found != char else f"\\u{ord(char):04x}"


def _who(kind: str, name: str) -> str:
    """Return who wrote a line. Persons have the names that they gave."""
    if kind == "system":
        return "the system"
    return name if kind != "agent" or name == "agent" else f"agent {name}"


def _text(data: Data, *names: str) -> str:
    """Return the first of some values that is a text with something in it."""
    return next((value for name in names if isinstance(value := data.get(name), str) and value), "")


def _part(data: Data, name: str) -> Data:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(data: Data, name: str) -> int:
    found = data.get(name)
    return len(found) if isinstance(found, list | tuple) else 0


def _body(proposal: Data) -> str:
    """Return a proposal's text, its question, or its action with the parameters."""
    body = _part(proposal, "body")
    return _action(body) if _text(body, "action") else _text(body, "text", "question")


def _action(data: Data) -> str:
    """Return an action with a row for each parameter; the lines of a text are indented below its name."""
    rows = [_text(data, "action")]
    for name, value in _part(data, "parameters").items():
        text = readable(value).replace("\n", "\n    ")
        rows.append(f"{name} =\n    {text}" if "\n" in text else f"{name} = {text}")
    return "\n".join(rows)


def _plain(what: str, *names: str) -> Callable[[Data], Said]:
    """Return the words for events of a kind that always says the same, with the first of these texts of its data."""
    return lambda data: Said(what=what, words=_text(data, *names))


def _phase_changed(data: Data) -> Said:
    to = _text(data, "to")
    return Said(what=f"now: {PHASES.get(to, to)}", words=_text(data, "reason"))


_PASSING = frozenset(
    {"awaiting_inference", "inferring_intent", "inferring_context", "inferring_action", "executing", "monitoring",
     "cleaning_up"}
)  # fmt: skip
"""Phases that a thread passes through without a person."""


def _inferred(stage: str) -> Callable[[Data], Said]:
    def said(data: Data) -> Said:
        given = "took the stored proposal of" if data.get("stored") is True else "proposed"
        return Said(what=f"{given} the {stage}", words=_body(_part(data, "proposal")))

    return said


def _gate_judged(data: Data) -> Said:
    from reasonblocks_threads.render import why
    from reasonblocks_threads.values import Failed

    found = data.get("gates")
    gates = found if isinstance(found, list | tuple) else ()
    failed = [each for each in gates if isinstance(each, Mapping) and each.get("passed") is not True]
    reasons = "; ".join(
        why(Failed(**{name: _text(gate, name) for name in ("gate", "value", "limit")})) for gate in failed
    )
    passed = data.get("passed") is True
    return Said(what="all gates passed, so nobody is asked" if passed else "a person has to be asked", words=reasons)


def _deferred(data: Data) -> Said:
    until = data.get("until")
    return Said(what=f"put the card off until {moment(until if isinstance(until, float | int) else None)}")


def _approved(data: Data) -> Said:
    who = "the policy approved" if data.get("auto") is True else "approved"
    return Said(what=f"{who} the action", words=_action(data))


def _review(data: Data) -> Said:
    late = data.get("auto") is True
    return Said(what="nobody reviewed the outcome in time, so it is accepted" if late else "accepted the outcome")


def _finished(data: Data) -> Said:
    report = _part(data, "report")
    worked = report.get("succeeded") is True
    what = "the action worked in part" if worked and report.get("partial") is True else "the action worked"
    return Said(what=what if worked else "the action did not report success", words=_text(report, "summary", "code"))


def _child_ended(data: Data) -> Said:
    phase = _text(data, "phase")
    return Said(what=f"a part has ended: {PHASES.get(phase, phase)}")


_SAID: Mapping[str, Callable[[Data], Said]] = {
    "thread_opened": lambda data: Said(what="opened the thread", words=_text(_part(data, "cause"), "title")),
    "phase_changed": _phase_changed,
    "evidence_added": lambda data: Said(what=f"added {count_noun(_number(data, 'items'), 'piece')} of evidence"),
    "policy_changed": _plain("changed the policy"),
    "deferred": _deferred,
    "noted": _plain("noted", "text"),
    "intent_inferred": _inferred("intent"),
    "context_inferred": _inferred("context"),
    "action_inferred": _inferred("action"),
    "inference_started": lambda data: Said(what=f"began to infer the {_text(data, 'stage')}"),
    "inference_failed": _plain("the inference failed", "detail", "code"),
    "inference_rejected": _plain("the inference was not begun", "detail", "code"),
    "gate_judged": _gate_judged,
    "confirmed": lambda data: Said(what=f"accepted the {_text(data, 'stage')}"),
    "corrected": lambda data: Said(
        what=f"corrected the {_text(data, 'stage')}", words=_body(_part(data, "proposal"))
    ),
    "provided": _plain("gave what was missing", "text"),
    "picked": lambda data: Said(what="chose the action", words=_body(_part(data, "proposal"))),
    "redirected": lambda data: Said(
        what=f"asked again for the {_text(data, 'redirect_to')}", words=_text(data, "feedback")
    ),
    "action_approved": _approved,
    "action_rejected": _plain("rejected the action", "reason"),
    "review_accepted": _review,
    "execution_started": lambda data: Said(what="began the action", words=_text(data, "action")),
    "execution_finished": _finished,
    "cancel_requested": _plain("asked the action to stop"),
    "late_report": _plain("a late result arrived and changed nothing here", "detail", "what"),
    "children_opened": lambda data: Said(what=f"split the matter into {count_noun(_number(data, 'children'), 'part')}"),
    "child_ended": _child_ended,
    "force_closed": _plain("closed the thread, because its parent has ended"),
    "source_cleaned_up": _plain("cleaned up the cause", "detail"),
    "cleanup_failed": _plain("the clean-up failed", "detail"),
    "work_dead": _plain("gave up a work item after its last attempt", "error", "kind"),
    "reconciled": _plain("repaired the thread after a crash", "what"),
}  # fmt: skip
"""The words for the events of each kind."""
