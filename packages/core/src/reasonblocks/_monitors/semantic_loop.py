"""Sees the same action with the same outcome again, exactly, in other words, or in a circle; and failures in a row."""

from __future__ import annotations

from itertools import takewhile

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, rows, settle, table, texts
from .outcome import hash_of

NAME = "semantic_loop"
FAILURE_TYPE = "loop"

WINDOW = 12
"""Actions looked back over: two rounds of the longest cycle, and the longest patience with something that runs."""
LONGEST_CYCLE = 5
SAME_ERROR = 3
"""Times that the same error text has to come before it counts."""
PATIENCE = 10
"""Equal answers of something that still runs after which waiting is no use any more."""
ACKNOWLEDGED = 40
"""Characters of a result below which it only says that something was done."""
MOVES = 3
"""Equal moves in a row, each acknowledged in the same words, that may well be meant."""
RETRIES = 3
"""Calls that fail by something which may pass, as a timeout may, before another is no use."""
FAILURES = 6
"""Actions within which three failures of one kind are one trouble."""
NEARBY = 5
"""Actions within which the same change is not made twice."""
NEAR = 0.75
"""Share of two calls' words that are the same in both, from which on one is the other reworded."""
FEWEST = 2
"""Words that two calls have to share to be about the same thing."""
_EDITS, _WAITS, _PASSES, _EMPTY, _GREEN, _MOVES = 1, 2, 4, 8, 16, 32
"""Flags of a row."""
Row = list[int]
"""[step, call, result, error or 0, flags, kind of error or 0, and of a search that found nothing its tool, words...]:
hashes but for two."""
Seen = tuple[float, str, list[int]]
"""(score, kind, steps)"""
_UNSEEN: Seen = (0.0, "", [])


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `kind` is a key of the texts below; `tool`; `count` of times."""
    before = rows(table(memory), "rows")
    if features.call is None:
        return settle({"rows": before}, memory)
    done = [*before, _row(features)][-WINDOW:]
    new = done[-1]
    came_before = new[1:3] in [row[1:3] for row in done[:-1]]
    looks = (
        *(_AGAIN if came_before else ()),
        *(_FAILED if new[3] else ()),
        *(_SOUGHT if new[4] & _EMPTY else ()),
        *(_CHANGED if new[4] & _EDITS else ()),
    )
    score, kind, steps = max([look(done) for look in looks], default=_UNSEEN)
    if len(steps) <= features.asked:
        score = 0.0
    facts: dict[str, JSON] = {"kind": kind, "tool": features.tool, "count": len(steps)}
    return settle({"rows": done}, memory, score, steps, facts)


def _row(features: Features) -> Row:
    flags = (
        _EDITS * ("edit" in features.roles)
        | _WAITS * features.waiting
        | _PASSES * features.passing
        | _GREEN * features.green
        | _EMPTY * (features.empty and not features.shell)
        | _MOVES * _moves(features)
    )
    sought = (hash_of(features.tool), *features.gist) if flags & _EMPTY else ()
    return [
        features.index,
        features.call or 0,
        features.result or 0,
        features.error or 0,
        flags,
        features.error_kind or 0,
        *sought,
    ]


def _moves(features: Features) -> bool:
    """Does it act, and come back with an acknowledgement: a page scrolled, a step taken, a key pressed?"""
    looks = features.shell or not features.roles.isdisjoint(("read", "search", "test"))
    return not looks and not features.failing and features.lengths[2] < ACKNOWLEDGED


def _repeat(done: list[Row]) -> Seen:
    """The same call and the same result in a row. What still runs, and what may pass, is given its time."""
    last, steps = done[-1], _streak(done)
    if last[4] & _WAITS:
        return (0.75, "waiting", steps) if len(steps) >= PATIENCE else _UNSEEN
    if last[4] & _PASSES:
        return (0.75, "retry", steps) if len(steps) > RETRIES else _UNSEEN
    if len(steps) < 2 or (last[4] & _MOVES and len(steps) <= MOVES):
        return _UNSEEN
    if last[3]:
        return (0.65 if len(steps) == 2 else 0.9), "retry", steps
    return (0.65 if len(steps) == 2 else 0.9), "repeat", steps


def _streak(done: list[Row]) -> list[int]:
    same = takewhile(lambda row: row[1:3] == done[-1][1:3], reversed(done))
    return [row[0] for row in same][::-1]


def _again(done: list[Row]) -> Seen:
    """The same call and the same result among the last actions: three times, or four with changes in between.

    A test that stays green after each change is how it should be.
    """
    steps = [row[0] for row in done if row[1:3] == done[-1][1:3]]
    if done[-1][4] & (_WAITS | _PASSES) or len(steps) < (3 + MOVES if done[-1][4] & _MOVES else 3):
        return _UNSEEN
    if any(row[4] & _EDITS for row in done if row[0] > steps[0]):
        return _UNSEEN if done[-1][4] & _GREEN else (min(1.0, 0.25 + 0.1 * len(steps)), "unmoved", steps)
    return min(1.0, 0.5 + 0.1 * len(steps)), "repeat", steps


def _redone(done: list[Row]) -> Seen:
    """A change that was made a few actions ago already, and had not failed."""
    steps = [row[0] for row in done[-NEARBY:] if row[1] == done[-1][1] and not row[3]]
    return (min(1.0, 0.45 + 0.1 * len(steps)), "redone", steps) if len(steps) >= 2 else _UNSEEN


def _cycle(done: list[Row]) -> Seen:
    """A-B-A-B, up to five actions long, each with the same outcome as a round before."""
    pairs = [row[1:3] for row in done]
    for period in range(2, LONGEST_CYCLE + 1):
        one, other = pairs[-period:], pairs[-2 * period : -period]
        if one == other and one[0] != one[-1] and not done[-1][4] & _WAITS:
            return 0.8, "cycle", [row[0] for row in done[-2 * period :]]
    return _UNSEEN


def _error(done: list[Row]) -> Seen:
    """The same error text, numbers and paths aside, whatever the calls."""
    steps = [row[0] for row in done if row[3] == done[-1][3] and not row[4] & _PASSES]
    if done[-1][4] & _PASSES or len(steps) < SAME_ERROR:
        return _UNSEEN
    return min(1.0, 0.35 + 0.1 * len(steps)), "error", steps


def _failing(done: list[Row]) -> Seen:
    """Failures in a row, two of one kind or three; or three of one kind within a few actions. A test's are work."""
    if done[-1][4] & _PASSES:
        return _UNSEEN
    failed = [row for row in done if row[3] and not row[4] & _PASSES]
    alike = [row for row in failed if row[5] == done[-1][5]]
    in_row = [row[0] for row in takewhile(failed.__contains__, reversed(done))][::-1]
    near = [row[0] for row in alike if row in done[-FAILURES:]]
    if len(in_row) > 2 or (len(in_row) == 2 and len(alike) > 1 and alike[-2] == done[-2]):
        return min(1.0, 0.35 + 0.15 * len(in_row)), "failing", in_row
    return (0.7, "failing", near) if len(near) > 2 else _UNSEEN


def _tried(done: list[Row]) -> Seen:
    """A call that had failed is made again, and fails again."""
    steps = [row[0] for row in done if row[1] == done[-1][1] and row[3] and not row[4] & _PASSES]
    return (0.65, "retry", steps) if len(steps) >= 2 and not done[-1][4] & _PASSES else _UNSEEN


def _reworded(done: list[Row]) -> Seen:
    """A search in other words that found nothing again, and said so in the same words."""
    last = done[-1]
    if last[4] & _WAITS:
        return _UNSEEN
    same = [row for row in done if row[4] & _EMPTY and row[2] == last[2] and row[6] == last[6]]
    steps = [row[0] for row in same if _near(row[7:], last[7:])]
    return (min(1.0, 0.35 + 0.1 * len(steps)), "reworded", steps) if len(steps) >= 3 else _UNSEEN


def _near(one: list[int], other: list[int]) -> bool:
    both = len({*one} & {*other})
    return both >= FEWEST and both >= NEAR * min(len(one), len(other))


_AGAIN = (_repeat, _again, _cycle)
"""These find nothing in a call whose outcome is new: most steps never meet them."""
_FAILED = (_error, _failing, _tried)
_CHANGED = (_redone,)
_SOUGHT = (_reworded,)


def say(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    kind, tool = texts(finding.facts, "kind", "tool")
    return f"{_EVIDENCE[kind]} {_NEXT[rung][kind]}".format(tool=tool, steps=at_steps(finding.evidence))


_EVIDENCE = {
    "repeat": "{steps} called {tool} with the same arguments and got the same result.",
    "unmoved": "{steps} called {tool} and got the same result, whatever was changed in between.",
    "retry": "{steps} called {tool} with the same arguments and got the same error.",
    "cycle": "{steps} went around the same circle of calls, ending with {tool}, with the same results each time.",
    "error": "{steps} ran into the same error, the last time with {tool}.",
    "failing": "{steps} failed, the last time with {tool}.",
    "redone": "{steps} made the same change with {tool}.",
    "reworded": "{steps} asked {tool} for the same thing in other words, and each time there was nothing.",
    "waiting": "{steps} asked {tool} whether it is done, and it is still running.",
}
_NO_MISSING = "Wrap up: give the best answer that the results so far support, and say what is missing."
_NO_LUCK = "Wrap up: give the best answer that the results so far support, and say what did not work."
_NEXT = {
    1: {
        "repeat": "Use the result you have, or change one argument before you call {tool} again.",
        "unmoved": "Those changes made no difference to it: look for the cause in another place.",
        "retry": "Read the error and change the argument it complains of, or use another tool.",
        "cycle": "Write down what these results already show, and take a step that is not among them.",
        "error": "Find the one thing in what {tool} was given that causes it, and change that.",
        "failing": "Before the next try, look up what {tool} takes or what is there, and build the call on that.",
        "redone": "Look at what is there now, and find out why the first time was not enough.",
        "reworded": "Take it that it is not there: look under another name, in another place, or list what there is.",
        "waiting": "Do something else that the task needs, or find out why it does not end.",
    },
    2: {
        "repeat": "Stop calling {tool} like this and take a different action now.",
        "unmoved": "Leave that place alone and read another part now.",
        "retry": "This call will keep failing: take a different action now.",
        "cycle": "Take an action now that is not part of this circle.",
        "error": "Drop this approach and try a different one now.",
        "failing": "Stop trying variants: find out what is there first.",
        "redone": "Do not make it once more: read the place and decide anew.",
        "reworded": "Stop searching for it here and take a different way now.",
        "waiting": "Stop asking and look for the reason now.",
    },
    3: {
        "repeat": _NO_MISSING,
        "unmoved": "Wrap up: say what was changed, what it left as it was, and where the cause may lie.",
        "retry": _NO_LUCK,
        "cycle": _NO_MISSING,
        "error": _NO_LUCK,
        "failing": _NO_LUCK,
        "redone": "Wrap up: say what was changed, and what it did not achieve.",
        "reworded": "Wrap up: give the best answer that the results so far support, and say what was not found.",
        "waiting": "Wrap up: say what was started, that it had not ended, and what is left to be done.",
    },
}
