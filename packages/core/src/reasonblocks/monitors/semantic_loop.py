"""Detects the same action with the same outcome again: exactly, reworded, or in a cycle; and failures in a row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

from ..types import JSON
from .arguments import is_reworded
from .features import Features
from .finding import Finding, settle
from .memory import rows, table, texts
from .outcome import hash_of
from .recall import Recall
from .wording import (
    SAME_ADVICE,
    Phrase,
    changed_again,
    circle,
    failures,
    nothing_found,
    repeated,
    same_result,
    told,
    unread,
)

NAME = "semantic_loop"
FAILURE_TYPE = "loop"

WINDOW = 12
"""Actions that are remembered: two rounds of the longest cycle fit in, and `PATIENCE`."""
LONGEST_CYCLE = 5
"""Actions of the longest cycle that is looked for."""
SAME_ERROR = 3
"""Occurrences of one error text from which on it counts."""
PATIENCE = 10
"""Equal answers of a running process from which on waiting no longer helps."""
MAX_MOVES = 3
"""Equal moves in a row, each with the same acknowledgement, that may be intended."""
RETRIES = 3
"""Calls with a passing error, such as a timeout, after which another one no longer helps."""
FAILURES = 6
"""Newest actions in which three failures of one kind are one trouble."""
NEWEST = 8
"""Newest actions in which different calls with the same result are looked for."""
NOTE = 0.5
"""Score of what agents mostly get out of by themselves: it adds to the composite, and fires no monitor."""
NEARBY = 5
"""Newest actions in which the same change is not made twice on purpose."""
SAYS = 60
"""A result from this length on, in characters, that different calls bring alike, shows that their arguments do not
matter; the same short one may be right for each of them."""
ALIKE = 3
"""Different calls with the same result from which on it counts."""
IN_VAIN = 5
"""Different searches with the same tool, each without a result, from which on they count, however they are worded."""
_OUTCOME = slice(1, 3)
"""The call and the result in a stored row."""
_EDITS, _WAITS, _PASSES, _EMPTY, _GREEN, _MOVES, _SAYS, _SEARCHES = 1, 2, 4, 8, 16, 32, 64, 128
"""Flags of an action."""


class Action(NamedTuple):
    """One remembered action; `call`, `result`, `error` and `error_kind` are hashes, 0 for none.

    `query` is empty but for a search that found nothing: then it has the hash of the tool, and of each word asked for.
    """

    step: int
    call: int
    result: int
    error: int
    flags: int
    error_kind: int
    query: list[int]

    @classmethod
    def of(cls, row: list[int]) -> Action:
        """Return the action of a stored row."""
        step, call, result, error, flags, error_kind, *query = row
        return cls(step, call, result, error, flags, error_kind, query)

    @property
    def row(self) -> list[int]:
        """The stored form: plain numbers in the order of the fields."""
        return [*self[:6], *self.query]

    @property
    def outcome(self) -> tuple[int, int]:
        """The call and its result."""
        return self.call, self.result

    @property
    def edits(self) -> bool:
        """True if it changed something; a refused edit did not."""
        return bool(self.flags & _EDITS)

    @property
    def waits(self) -> bool:
        """True if the result reports a running process."""
        return bool(self.flags & _WAITS)

    @property
    def passes(self) -> bool:
        """True if the error may pass, as a timeout does."""
        return bool(self.flags & _PASSES)

    @property
    def is_empty(self) -> bool:
        """True for a search that found nothing."""
        return bool(self.flags & _EMPTY)

    @property
    def searches(self) -> bool:
        """True for a search proper, not a read."""
        return bool(self.flags & _SEARCHES)

    @property
    def is_green(self) -> bool:
        """True for a test that passed."""
        return bool(self.flags & _GREEN)

    @property
    def moves(self) -> bool:
        """True for a move: a page scrolled, a step taken, a key pressed."""
        return bool(self.flags & _MOVES)

    @property
    def says(self) -> bool:
        """True if the result should differ where the arguments do: it is long, and of neither a change nor a test."""
        return bool(self.flags & _SAYS)


class Match(NamedTuple):
    """The finding of one check: its score, the key of its text, and the steps that show it. The worst one wins."""

    score: float
    kind: str
    steps: list[int]


_NO_MATCH = Match(0.0, "", [])


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` is a key of the texts below; `tool`; `count` of steps."""
    before = rows(table(memory), "rows")
    if features.call is None:
        return settle({"rows": before}, memory)
    new = _action(features)
    kept = [*before, new.row][-WINDOW:]
    repeats = kept[-1][_OUTCOME] in [row[_OUTCOME] for row in kept[:-1]]
    checks = (
        *(_REPEATING if repeats and features.tool else ()),
        *((_same_result,) if new.says and new.result in [row[2] for row in kept[:-1]] else ()),
        *(_FAILING if new.error and features.tool else ()),
        *((_unreadable,) if repeats and new.error and not features.tool else ()),
        *((_reworded,) if new.is_empty else ()),
        *((_redone,) if new.edits else ()),
    )
    # Most steps need no check: their stored rows stay unread, since reading all twelve takes five times as long as the
    # comparison above.
    actions = [Action.of(row) for row in kept] if checks else []
    score, kind, steps = max([check(actions) for check in checks], default=_NO_MATCH)
    if len(steps) <= features.asked:
        score = 0.0
    facts: dict[str, JSON] = {"kind": kind, "tool": features.tool, "count": len(steps)}
    return settle({"rows": kept}, memory, score, steps, facts)


def _action(features: Features) -> Action:
    searches = features.empty and not features.shell
    flags = (
        _EDITS * features.changed
        | _WAITS * features.waiting
        | _PASSES * features.passing
        | _GREEN * features.green
        | _EMPTY * searches
        | _MOVES * features.moves
        | _SAYS * _says_something(features)
        | _SEARCHES * (features.roles == {"search"})
    )
    return Action(
        step=features.index,
        call=features.call or 0,
        result=features.result or 0,
        error=features.error or 0,
        flags=flags,
        error_kind=features.error_kind or 0,
        query=[hash_of(features.tool), *features.gist] if searches else [],
    )


def _says_something(features: Features) -> bool:
    """Return True if different calls should not all bring this result."""
    acts = not features.roles.isdisjoint(("edit", "test"))
    return features.lengths[2] >= SAYS and not (acts or features.failing or features.waiting)


def _repeat(actions: list[Action]) -> Match:
    """Find the same call and result in a row, but give a running process, or an error that may pass, its time."""
    last, steps = actions[-1], _streak(actions)
    if last.waits:
        return Match(0.75, "waiting", steps) if len(steps) >= PATIENCE else _NO_MATCH
    if last.passes:
        return Match(0.75, "retry", steps) if len(steps) > RETRIES else _NO_MATCH
    if len(steps) < 2 or (last.moves and len(steps) <= MAX_MOVES):
        return _NO_MATCH
    return Match(0.65 if len(steps) == 2 else 0.9, "retry" if last.error else "repeat", steps)


def _streak(actions: list[Action]) -> list[int]:
    """Return the newest steps in a row with the last one's outcome."""
    outcome = actions[-1].outcome
    same = takewhile(lambda action: action.outcome == outcome, reversed(actions))
    return [action.step for action in same][::-1]


def _again(actions: list[Action]) -> Match:
    """Find the same call and result at least three times, in a row or not.

    With changes in between the score is lower. A test that stays green after each change is no trouble.
    """
    last = actions[-1]
    steps = [action.step for action in actions if action.outcome == last.outcome]
    if last.waits or last.passes or len(steps) < (3 + MAX_MOVES if last.moves else 3):
        return _NO_MATCH
    if any(action.edits for action in actions if action.step > steps[0]):
        return _NO_MATCH if last.is_green else Match(min(1.0, 0.25 + 0.1 * len(steps)), "unmoved", steps)
    return Match(min(1.0, 0.5 + 0.1 * len(steps)), "repeat", steps)


def _redone(actions: list[Action]) -> Match:
    """Find a change that was made a few actions ago already, with the same result and no other change in between.

    After another change, which may have undone it, making it again is work.
    """
    last = actions[-1]
    changes = takewhile(lambda action: action.outcome == last.outcome, _changes(actions[-NEARBY:]))
    steps = [action.step for action in changes][::-1]
    return Match(min(1.0, 0.45 + 0.1 * len(steps)), "redone", steps) if len(steps) >= 2 else _NO_MATCH


def _changes(actions: list[Action]) -> list[Action]:
    """Return the actions that changed something, the newest first."""
    return [action for action in reversed(actions) if action.edits]


def _cycle(actions: list[Action]) -> Match:
    """Find A-B-A-B, up to five actions long, each with the same outcome as in the round before."""
    outcomes = [action.outcome for action in actions]
    for period in range(2, LONGEST_CYCLE + 1):
        newest, before = outcomes[-period:], outcomes[-2 * period : -period]
        if newest == before and newest[0] != newest[-1] and not actions[-1].waits:
            return Match(0.8, "cycle", [action.step for action in actions[-2 * period :]])
    return _NO_MATCH


def _error(actions: list[Action]) -> Match:
    """Find the same error text, numbers and paths aside, whatever was called; errors that are far apart are a note."""
    last = actions[-1]
    alike = [action for action in actions if action.error == last.error and not action.passes]
    if last.passes or len(alike) < SAME_ERROR:
        return _NO_MATCH
    dense = alike[-SAME_ERROR] in actions[-FAILURES:]
    return Match(min(1.0, 0.35 + 0.1 * len(alike)) if dense else NOTE, "error", [action.step for action in alike])


def _failing(actions: list[Action]) -> Match:
    """Find three failures in a row; two of one kind in a row, or three in the newest few actions, are only a note.

    The failures of a test have no `error`: they are work.
    """
    last = actions[-1]
    if last.passes:
        return _NO_MATCH
    failed = [action for action in actions if action.error and not action.passes]
    alike = [action for action in failed if action.error_kind == last.error_kind]
    in_row = [action.step for action in takewhile(failed.__contains__, reversed(actions))][::-1]
    near = [action.step for action in alike if action in actions[-FAILURES:]]
    if len(in_row) > 2:
        return Match(min(1.0, 0.2 + 0.15 * len(in_row)), "failing", in_row)
    if len(in_row) == 2 and len(alike) > 1 and alike[-2] == actions[-2]:
        return Match(NOTE, "failing", in_row)
    return Match(NOTE, "failing", near) if len(near) > 2 else _NO_MATCH


def _tried(actions: list[Action]) -> Match:
    """Find a call that failed, is made again, and fails with the same error."""
    last = actions[-1]
    steps = [
        action.step
        for action in actions
        if action.call == last.call and action.error == last.error and not action.passes
    ]
    return Match(0.65, "retry", steps) if len(steps) >= 2 and not last.passes else _NO_MATCH


def _unreadable(actions: list[Action]) -> Match:
    """Find steps in a row whose call could not be read, so that nothing came back but the same complaint."""
    steps = _streak(actions)
    return Match(min(1.0, 0.45 + 0.1 * len(steps)), "unreadable", steps) if len(steps) >= 2 else _NO_MATCH


def _same_result(actions: list[Action]) -> Match:
    """Find different calls in the newest few actions that brought the same result."""
    alike = [action for action in actions[-NEWEST:] if action.says and action.result == actions[-1].result]
    steps = [*{action.call: action.step for action in alike}.values()]
    return Match(min(1.0, 0.35 + 0.1 * len(steps)), "same_result", steps) if len(steps) >= ALIKE else _NO_MATCH


def _reworded(actions: list[Action]) -> Match:
    """Find a search in other words that again found nothing, with the same result; or many, whatever their words."""
    last = actions[-1]
    if last.waits:
        return _NO_MATCH
    empty = [action for action in actions if action.is_empty and action.query[0] == last.query[0]]
    same = [action for action in empty if action.result == last.result]
    steps = [action.step for action in same if is_reworded(action.query[1:], last.query[1:])]
    if len(steps) >= 3:
        return Match(min(1.0, 0.35 + 0.1 * len(steps)), "reworded", steps)
    steps = [*{action.call: action.step for action in same if action.searches}.values()]
    return Match(min(1.0, 0.15 + 0.1 * len(steps)), "reworded", steps) if len(steps) >= IN_VAIN else _NO_MATCH


_REPEATING = (_repeat, _again, _cycle)
"""Checks that find nothing in an action with a new outcome."""
_FAILING = (_error, _failing, _tried)


def say(finding: Finding, rung: int, recall: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    (kind,) = texts(finding.facts, "kind")
    if kind not in _ONE_WAY:
        return told(recall, finding.steps, rung, _EVIDENCE[kind], _ADVICE.get(kind, {}))
    evidence = _EVIDENCE[kind](recall, finding.steps, rung)
    return f"{evidence} {_NEXT[rung][kind]}" if evidence else ""


_ONE_WAY = ("unmoved", "redone", "waiting", "unreadable")
"""Kinds of trouble that another value of an argument would not end."""
_EVIDENCE: Mapping[str, Phrase] = {
    "repeat": repeated,
    "unmoved": repeated,
    "retry": repeated,
    "cycle": circle,
    "error": failures,
    "failing": failures,
    "redone": changed_again,
    "reworded": nothing_found,
    "same_result": same_result,
    "waiting": repeated,
    "unreadable": unread,
}
_CYCLE = {
    1: "Say in one line what these results already show, and take a step that is not among them.",
    2: "Take an action now that is not part of it.",
    3: "Their results are known: take a step of another kind, on what is still missing.",
}
_ADVICE: Mapping[str, Mapping[int, str]] = {"cycle": _CYCLE, "same_result": SAME_ADVICE}
"""The next action, by kind, where it does not follow from the kind of the results."""
_NEXT = {
    1: {
        "unmoved": "If you changed something in between, it made no difference: look for the cause in another place.",
        "redone": "Look at what is there now, and find out why the first time was not enough.",
        "unreadable": "Write one call in the format that is asked for, and nothing around it.",
        "waiting": "Do something else that the task needs, or find out why it does not end.",
    },
    2: {
        "unmoved": "Read another part now.",
        "redone": "Read the place and decide anew.",
        "unreadable": "Write one call now.",
        "waiting": "Look for the reason now.",
    },
    3: {
        "unmoved": "The cause may be elsewhere: take a step of another kind, such as reading how this result is made.",
        "redone": "Making it again has not helped: take a step of another kind, such as a test of what is there.",
        "unreadable": "Take a step of another kind: the shortest call that the format allows.",
        "waiting": "Asking has not helped: take a step of another kind, such as a look at the log.",
    },
}
