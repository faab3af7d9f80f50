"""Sees the same action with the same outcome again: in a row, as a cycle, or as the same error text."""

from __future__ import annotations

from itertools import takewhile

from ..types import JSON
from .features import Features
from .finding import Finding, at_steps, rows, settle, table, texts

__all__ = ["FAILURE_TYPE", "NAME", "observe", "say"]

NAME = "semantic_loop"
FAILURE_TYPE = "loop"

WINDOW = 10
"""Actions looked back over: two rounds of the longest cycle."""
LONGEST_CYCLE = 5
SAME_ERROR = 3
"""Times that the same error text has to come before it counts."""

Row = list[int]
"""[step, call, result, error or 0, 1 if it waits for something, 1 if it edits something]"""
Seen = tuple[float, str, list[int]]
"""(score, kind, steps)"""
_UNSEEN: Seen = (0.0, "", [])


def observe(features: Features, memory: JSON) -> Finding:
    """`facts`: `kind` repeat, unmoved (by the edits in between), retry, cycle or error; `tool`; `count` of times."""
    before = rows(table(memory), "rows")
    if features.call is None:
        return settle({"rows": before}, memory)
    done = [*before, _row(features)][-WINDOW:]
    came_before = done[-1][1:3] in [row[1:3] for row in done[:-1]]
    score, kind, steps = max(look(done) for look in (_LOOKS if came_before else _LOOKS[-1:]))
    facts: dict[str, JSON] = {"kind": kind, "tool": features.tool, "count": len(steps)}
    return settle({"rows": done}, memory, score, steps, facts)


def _row(features: Features) -> Row:
    flags = (int(features.waiting), int("edit" in features.roles))
    return [features.index, features.call or 0, features.result or 0, features.error or 0, *flags]


def _repeat(done: list[Row]) -> Seen:
    """The same call and the same result in a row. One retry of a failed call is fair."""
    last, streak = done[-1], _streak(done)
    if last[4] or len(streak) < 2:
        return _UNSEEN
    if last[3]:
        return (0.5 if len(streak) == 2 else 0.85), "retry", streak
    return (0.65 if len(streak) == 2 else 0.9), "repeat", streak


def _streak(done: list[Row]) -> list[int]:
    same = takewhile(lambda row: row[1:3] == done[-1][1:3], reversed(done))
    return [row[0] for row in same][::-1]


def _again(done: list[Row]) -> Seen:
    """The same call and the same result three times among the last actions."""
    steps = [row[0] for row in done if row[1:3] == done[-1][1:3]]
    if done[-1][4] or len(steps) < 3:
        return _UNSEEN
    edited = any(row[5] for row in done if row[0] > steps[0])
    return min(1.0, 0.5 + 0.1 * len(steps)), "unmoved" if edited else "repeat", steps


def _cycle(done: list[Row]) -> Seen:
    """A-B-A-B, up to five actions long, each with the same outcome as a round before."""
    pairs = [row[1:3] for row in done]
    for period in range(2, LONGEST_CYCLE + 1):
        one, other = pairs[-period:], pairs[-2 * period : -period]
        if one == other and one[0] != one[-1] and not done[-1][4]:
            return 0.8, "cycle", [row[0] for row in done[-2 * period :]]
    return _UNSEEN


def _error(done: list[Row]) -> Seen:
    """The same error text, numbers and paths aside, whatever the calls."""
    steps = [row[0] for row in done if row[3] == done[-1][3]]
    if not done[-1][3] or len(steps) < SAME_ERROR:
        return _UNSEEN
    return min(1.0, 0.35 + 0.1 * len(steps)), "error", steps


_LOOKS = (_repeat, _again, _cycle, _error)
"""All but the last find nothing in a call whose outcome is new: most steps never meet them."""


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
}
_NEXT = {
    1: {
        "repeat": "Use the result you have, or change one argument before you call {tool} again.",
        "unmoved": "Those changes made no difference to it: look for the cause in another place.",
        "retry": "Read the error and change the argument it complains of, or use another tool.",
        "cycle": "Write down what these results already show, and take a step that is not among them.",
        "error": "Find the one thing in what {tool} was given that causes it, and change that.",
    },
    2: {
        "repeat": "Stop calling {tool} like this and take a different action now.",
        "unmoved": "Leave that place alone and read another part now.",
        "retry": "This call will keep failing: take a different action now.",
        "cycle": "Take an action now that is not part of this circle.",
        "error": "Drop this approach and try a different one now.",
    },
    3: {
        "repeat": "Wrap up: give the best answer that the results so far support, and say what is missing.",
        "unmoved": "Wrap up: say what was changed, what it left as it was, and where the cause may lie.",
        "retry": "Wrap up: give the best answer that the results so far support, and say what did not work.",
        "cycle": "Wrap up: give the best answer that the results so far support, and say what is missing.",
        "error": "Wrap up: give the best answer that the results so far support, and say what did not work.",
    },
}
