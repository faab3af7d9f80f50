"""Finds where a run first got into sustained trouble, and of what kind it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reasonblocks.types import FSMState, StepDecision

from ._acts import Act

LOOK_BACK = 6
"""Steps within which two events count as one trouble: one more than the longest query for lessons has."""
TWICE = 2
"""Errors of one tool, repeated calls, or fruitless searches that make a trouble; a single one may be an accident."""
SLOW_STEPS = 3
"""Consecutive steps in SLOW or SKIP that make a trouble: one more than the monitors' composite needs."""
HARD = (FSMState.SLOW, FSMState.SKIP)
Form = str
"""The form of trouble: "error", "repeat", "empty", "claimed" (an error that the run took for a success), or the failure
type that a monitor reported."""
SELF_EVIDENT = ("unverified", "drift", "sprawl", "churn")
"""Failure types that make a lesson without a call that failed or was repeated. A contradiction is not among them: it
needs a failed call after which the run went on as if it had succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Kind:
    """The properties that troubles share if one lesson can fit them all.

    `failure_type` is the evaluation's, "" if it gave none. `error` is the masked error, "" for other forms.
    """

    failure_type: str
    form: Form
    tool: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One trouble: `at` is the step after which it was recognised, `steps` are those that show it, the newest last.

    If it is not `sustained`, it is a single error, which counts only if other runs met it as well.
    """

    kind: Kind
    at: int
    steps: tuple[int, ...]
    sustained: bool = True


def first_trouble(acts: Sequence[Act], decisions: Sequence[StepDecision]) -> Trouble | None:
    """Return the first trouble that can be named, otherwise the first error, otherwise None.

    A trouble begins where a monitor fires, the composite opens the gate, three consecutive steps are SLOW or SKIP, or a
    tool fails twice without a success in between. It is named after a call that failed, was repeated or found nothing
    twice in the last six steps, otherwise after the monitor that fired. The first error is not sustained.
    """
    for at, decision in enumerate(decisions):
        failed = _failed_again(acts, at)
        last = decisions[max(0, at + 1 - SLOW_STEPS) : at + 1]
        hard = len(last) == SLOW_STEPS and all(recent.fsm_state in HARD for recent in last)
        if not (decision.failure_type or decision.monitors_fired or failed or hard):
            continue
        if (named := _named(acts, decision, at, failed)) is not None:
            return named
    return _first_error(acts)


def _first_error(acts: Sequence[Act]) -> Trouble | None:
    at = next((n for n, act in enumerate(acts) if act.failing), None)
    if at is None:
        return None
    kind = Kind(failure_type="", form="error", tool=acts[at].tool, error=acts[at].error)
    return Trouble(kind=kind, at=at, steps=(at,), sustained=False)


def _failed_again(acts: Sequence[Act], at: int) -> tuple[int, ...]:
    """Return the steps at which the newest step's tool failed since its last success, if there are two."""
    if not acts[at].failing:
        return ()
    found: list[int] = []
    for index in range(at, max(-1, at - LOOK_BACK), -1):
        if acts[index].tool == acts[at].tool:
            if not acts[index].failing:
                break
            found.append(index)
    return tuple(reversed(found)) if len(found) >= TWICE else ()


def _named(acts: Sequence[Act], decision: StepDecision, at: int, failed: tuple[int, ...]) -> Trouble | None:
    kind = decision.failure_type
    steps = failed or _commonest([(n, act.tool) for n, act in _recent(acts, at) if act.failing])
    if steps:
        newest = acts[steps[-1]]
        return _trouble(at, steps, kind or "", "error", newest.tool, newest.error)
    steps = _commonest([(n, f"{a.call} {a.result}") for n, a in _recent(acts, at) if a.call is not None and not a.says])
    if steps:
        return _trouble(at, steps, kind or "", "repeat", acts[steps[-1]].tool)
    steps = _commonest([(n, act.tool) for n, act in _recent(acts, at) if act.empty and not act.says])
    if steps:
        return _trouble(at, steps, kind or "", "empty", acts[steps[-1]].tool)
    if kind == "contradiction" and (failing := _just_failed(acts, at)) is not None:
        return _trouble(at, (failing,), kind, "claimed", acts[failing].tool, acts[failing].error)
    if kind in SELF_EVIDENT and decision.monitors_fired:
        return _trouble(at, (at,), str(kind), str(kind), _last_tool(acts, at))
    return None


def _just_failed(acts: Sequence[Act], at: int) -> int | None:
    """Return the newest step that did something, if it failed."""
    newest = next((n for n, act in reversed(_recent(acts, at)) if act.tool and not act.says), None)
    return newest if newest is not None and acts[newest].failing else None


def _trouble(at: int, steps: tuple[int, ...], failure_type: str, form: Form, tool: str, error: str = "") -> Trouble:
    return Trouble(kind=Kind(failure_type=failure_type, form=form, tool=tool, error=error), at=at, steps=steps)


def _recent(acts: Sequence[Act], at: int) -> list[tuple[int, Act]]:
    first = max(0, at + 1 - LOOK_BACK)
    return list(enumerate(acts[first : at + 1], first))


def _commonest(marked: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """Return the steps with the commonest mark, if there are two; on a tie, the mark that occurred last."""
    counts = Counter(mark for _, mark in marked)
    most = max(counts.values(), default=0)
    if most < TWICE:
        return ()
    newest = next(mark for _, mark in reversed(marked) if counts[mark] == most)
    return tuple(n for n, mark in marked if mark == newest)


def _last_tool(acts: Sequence[Act], at: int) -> str:
    return next((act.tool for act in reversed(acts[: at + 1]) if act.tool and not act.says), "")
