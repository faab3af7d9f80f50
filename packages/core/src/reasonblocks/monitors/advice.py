"""Chooses the next action that a text asks for, by what came back from the calls that it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .recall import Action, Recall

FORM = 3
"""Different calls that were refused with the same words from which on their form is at fault."""
INSISTENT = 3
"""Equal calls with the same result from which on an agent may have nothing else to do."""

_PACKED = re.compile(r"\][\"'\s]*(?:,|;|and|then)?\s*\w+\s*\[")
"""An argument that ends one call and begins another: "Oslo] and Search[Bergen"."""

_FIRST, _FIRMER, _OTHER = 1, 2, 3
"""The rungs: an explanation, a shorter text, and a request for another kind of step."""


def next_step(recall: Recall, actions: Sequence[Action], rung: int) -> str:
    """Return the next action, for a rung, after these calls, of which the last one decides."""
    last = actions[-1]
    if last.failed:
        case = _after_error(recall, actions)
    elif last.refused:
        case = "blocked"
    elif last.is_blank and not last.found and not last.is_empty:
        case = "silent"
    elif last.is_empty or last.is_blank:
        case = "nothing_bare" if last.is_bare else "nothing"
    else:
        case = "result" if last.found or last.checks else "done"
    if case in ("result", "done") and any(act.failed and not recall.is_cured(act) for act in recall.actions):
        case = "open"
    advice = _NEXT[rung][case]
    again = [action for action in actions if action.exact_call == last.exact_call]
    in_row = all(action.exact_call == last.exact_call for action in recall.actions[-INSISTENT:])
    if recall.one_tool and in_row and len(again) >= INSISTENT and case in _STUCK:
        return f"{advice[:-1]}, or report that it is blocked."
    return advice


def _after_error(recall: Recall, actions: Sequence[Action]) -> str:
    last = actions[-1]
    if _PACKED.search(last.shown):
        return "packed"
    if last.refused:
        return "blocked"
    if last.offers and last.quotable:
        return "offers"
    since = [action for action in recall.actions if action.step > actions[0].step]
    if last.misses and not any(action.found for action in since):
        return "missing"
    if _refuses_form(recall, last):
        return "form"
    if not last.quotable:  # a text never refers an agent to what other people's words ask for
        return "apart"
    return "bare" if last.is_bare else "error"


def _refuses_form(recall: Recall, last: Action) -> bool:
    """Return True if different calls were refused in the same words, which name nothing of any of them."""
    alike = [action for action in recall.failed_lately() if action.error == last.error and not action.names_argument]
    return bool(last.error) and len({action.exact_call for action in alike}) >= FORM and last in alike


_STUCK = ("error", "apart", "bare", "missing", "form", "nothing_bare")
"""Cases in which an agent with one tool may have no other way."""
_NEXT: Mapping[int, Mapping[str, str]] = {
    _FIRST: {
        "offers": "Take one of those that the error itself offers.",
        "missing": "Find out first what is really there, and build the next call on that.",
        "form": "It refuses the form of the call, not its content: compare the call with the description of the tool.",
        "bare": "Settle what the error complains of before you make this call again.",
        "error": "Read the error and change what it complains of before the next try.",
        "apart": "Change something in the call before the next try, or go on without it.",
        "blocked": "The same call will be refused again: go on without it, or report that it is blocked.",
        "silent": "Check in another way whether it had its effect, and go on from there.",
        "nothing": "Look under another name or in another place, or find out whether there is anything at all.",
        "nothing_bare": "This call has nothing to change: go on without what it would bring.",
        "result": "Use the result that you have: say what is still missing, or give the answer.",
        "done": "Say what is still missing, or finish.",
        "open": "Say what is still missing, beginning with what has failed, and take that up.",
        "packed": "The argument seems to hold more than one call: make one at a time.",
    },
    _FIRMER: {
        "offers": "Take one that the error offers.",
        "missing": "Find out what is there first.",
        "form": "Change the form of the call, not its content.",
        "bare": "Settle first what the error complains of.",
        "error": "Change what the error complains of.",
        "apart": "Change the call, or go on without it.",
        "blocked": "Go on without it, or report that it is blocked.",
        "silent": "Check now what it did.",
        "nothing": "Look in another place now.",
        "nothing_bare": "Go on without it now.",
        "result": "Say what is missing, or give the answer.",
        "done": "Say now what is missing, or finish.",
        "open": "Say now what is still missing, and take that up.",
        "packed": "Make one call at a time, with one value.",
    },
    _OTHER: {
        "offers": "That has not worked: take a step of another kind, with what the error itself offers.",
        "missing": "That has not worked: take a step of another kind, such as a look at what is there.",
        "form": "That form has not worked: take a step of another kind, such as a small call as the tool describes it.",
        "bare": "That has not worked: take a step of another kind, one that settles what the error complains of.",
        "error": "That has not worked: take a step of another kind, after a close look at what the error names.",
        "apart": "That has not worked: take a step of another kind, without this call.",
        "blocked": "It stays refused: take a step of another kind without it, or report that it is blocked.",
        "silent": "Take a step of another kind: one that shows whether it had its effect.",
        "nothing": "There is nothing here: take a step of another kind, such as a list of what there is.",
        "nothing_bare": "There is nothing here: take a step of another kind.",
        "result": "Its result is known: take a step of another kind, on what is still missing, or give the answer.",
        "done": "Take a step of another kind, on what is still missing, or finish.",
        "open": "Take a step of another kind: one that settles what has failed.",
        "packed": "One argument has not worked for several calls: make one call, with one value.",
    },
}
