"""Words the finding about the newest step: what it repeats, how often, and when; each number is counted (section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..account.message import message_line
from ..account.observe import ACTIONS_KEPT, MAX_CALLS, tools_of
from ..types import JSON, Account, Step, ToolCall
from ..types.account import FAILED, Action
from ..util.text import ends
from . import untried
from .excerpts import call_line, plain, quoted
from .forms import Form
from .hints import hint_of
from .hints.moment import Moment
from .hints.seen import parse_seen
from .memory import table
from .roles import looks_up
from .untried import Alternatives

TEXTS = 3
"""Texts of one monitor in a run."""
PLACES = 4
"""Earlier steps that a text names."""
CYCLES = (2, 3)
"""Steps of a cycle in which a text waits for its place."""
_ASIDE = ", times and ids aside"


class Told(NamedTuple):
    """The text about a step: the `fact`, the `hint` at a way on, "" for none, and the `row` of the table with it.

    It `waits` where the agent goes round in a cycle that soon comes to the place at which the way on begins: a text is
    shown in one call, so an agent that first has to go there has lost it when it arrives.
    """

    fact: str = ""
    hint: str = ""
    row: str = ""
    waits: bool = False

    @property
    def text(self) -> str:
        """The text that is injected."""
        return f"{self.fact} {self.hint}".strip()


def text_about(step: Step, index: int, account: Account, sightings: JSON, roles: Mapping[str, str]) -> Told:
    """Return the text about the newest step; an empty one if nothing can be said.

    Each text stands alone: guidance is in one call, so the agent does not see an earlier one any more.
    """
    now = [action for action in account.actions if action.step == index]
    calls = ends(step.tool_calls, MAX_CALLS)
    if not now or not (calls or step.tool_results):
        return Told()
    call = calls[-1] if calls else ToolCall(id="", name="")
    seen = parse_seen(table(sightings).get("seen"))
    moment = Moment(step=step, index=index, account=account, now=now[-1], call=call, seen=seen, roles=roles)
    fact = _due(calls, account) or _fact(call, now[-1], index, account) if calls else _no_call(now[-1], index, account)
    if not fact:
        return Told()
    fact = f"{fact[0].upper()}{fact[1:]}" if fact.startswith("at least ") else fact
    alone = len(step.tool_calls) <= 1
    line = _line(moment) if alone and calls else ""
    row, hint = hint_of(moment) if alone else ("", "")
    waits = False
    if not hint and calls:
        found = untried.alternatives(sightings, index)
        hint = untried_text(found, call, failed=moment.failed)
        row = "untried" if hint else ""
        later = _is_away(found, call) or (not hint and moment.failed and not found.newest)
        waits = later and _comes_back_to(found.seen, index, account)
    return Told(f"{fact}: {quoted(line)}." if line else f"{fact}.", hint, row, waits)


def _comes_back_to(place: int, index: int, account: Account) -> bool:
    """Return True if the agent went round in a short cycle twice, and the step `place` is a part of it.

    As each step on which a text waits goes on with the cycle, none waits for longer than that takes.
    """
    steps = range(index, index - 2 * max(CYCLES), -1)
    newest = [[(one.call, one.result) for one in account.actions if one.step == step] for step in steps]
    return any(place > index - length and newest[:length] == newest[length : 2 * length] for length in CYCLES)


def _due(calls: Sequence[ToolCall], account: Account) -> str:
    """Return what is told whatever the patience; "" for a step at which nothing is."""
    if account.did.due == "check" and account.check is not None:
        last = f", the last being {call_line(calls)}," if len(calls) == 1 else ""
        ended = "have ended in the same way, with a change between any two of them"
        return f"{account.check.row} checks in a row{last} {ended}"
    if account.did.due == "series":
        tool = plain(calls[-1].name) if len(calls) == 1 else "one tool"
        return f"{account.series.tried} calls of {tool}, which differ in one value, have ended in the same way"
    return ""


def _fact(call: ToolCall, now: Action, index: int, account: Account) -> str:
    did, shown, tool = account.did, call_line([call]), plain(call.name)
    if did.letter == "A":
        return _same_call(shown, now, index, account)
    if did.letter == "B":
        tools = tools_of(call.name)
        alike = [one for one in account.actions if one.tool in tools and one.line == now.line]
        calls = f"{_count(len(alike), index, account)} calls of {tool}"
        return f"{calls} have brought the same message, but for numbers and names ({_places(alike, index)})"
    if did.letter == "C":
        row = dict(account.vain).get(now.tool, 0)
        return f"The last {row} searches with {tool} have found nothing, or little that is new" if row else ""
    alike = [one for one in account.actions if one.result == now.result]
    calls = _count(len({one.call for one in alike}), index, account)
    aside = _ASIDE if len({one.exact for one in alike}) > 1 else ""
    return f"{calls} different calls, the last being {shown}, have brought the same result{aside}"


def _no_call(now: Action, index: int, account: Account) -> str:
    """Return what came back to answers in which no call could be read."""
    silent = [one for one in account.actions if one.tool == now.tool]
    alike = [one for one in silent if one.result == now.result or (now.line and one.line == now.line)]
    if len(alike) < 2:
        return ""
    answers = f"{_count(len(alike), index, account)} answers without a call"
    return f"{answers} have got the same reply ({_places(alike, index)})"


def _same_call(shown: str, now: Action, index: int, account: Account) -> str:
    alike = [one for one in account.actions if one.call == now.call]
    same = [one for one in alike if one.result == now.result]
    if len(same) > 1:
        aside = _ASIDE if len({one.exact for one in same}) > 1 else ""
        what = "failed in the same way" if all(one.flags & FAILED for one in same) else "brought the same result"
        return f"{shown} has {what} {_count(len(same), index, account)} times{aside} ({_places(same, index)})"
    if len(alike) > 1:
        where = _places(alike, index)
        return f"{shown} was called {_count(len(alike), index, account)} times ({where})"
    return ""


def _count(count: int, index: int, account: Account) -> str:
    """Return a count of remembered actions; "at least" if there may be others."""
    whole = account.steps == index + 1 and len(account.actions) < ACTIONS_KEPT
    return str(count) if whole else f"at least {count}"


def _places(actions: Sequence[Action], index: int) -> str:
    """Return "your last step, and 2 and 4 steps before it"."""
    before = sorted({index - action.step for action in actions} - {0})
    if not before:
        return "your last step"
    shown = [str(distance) for distance in before[:PLACES]]
    if len(before) > PLACES:
        return f"your last step, {', '.join(shown)} steps before it, and earlier"
    listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    return f"your last step, and {listed} step{'s' * (before[-1] != 1)} before it"


def _line(moment: Moment) -> str:
    """Return the message line of a failed result that may be quoted."""
    if len(moment.step.tool_results) != 1 or not moment.own or not moment.reading.failed:
        return ""
    return message_line(moment.reading.text)


def untried_text(found: Alternatives, call: ToolCall, *, failed: bool) -> str:
    """Return the sentence about calls that were not made yet; "" without any, or if one cannot be written.

    Where a list was shown elsewhere, the call that showed it comes first; if that cannot be made from here, nothing is
    said. After an error, values are named only if they are in it, and an error's values no more once a call was
    accepted. `call` is the newest one.
    """
    form = found.form
    if form is None or (failed and (not found.newest or found.here)) or (found.here and looks_up(form.tool)):
        return ""
    calls = _calls(form, found.names)
    if not calls or (not failed and not found.newest and not found.shown_by and call.name == form.tool):
        return ""
    if not _is_away(found, call):
        return f"Not tried yet{' after this result' * found.here}: {', '.join(calls)}."
    return (
        f"Not tried yet: {found.shown_by} and then {calls[0]}." if found.shown_by and "…" not in found.shown_by else ""
    )


def _is_away(found: Alternatives, call: ToolCall) -> bool:
    """Return True if the agent has to go elsewhere before it can make the untried calls.

    So it is if the last result has another list of this kind. Or if it has none, and the tool that takes members showed
    the older list itself and was called since: it leads from place to place, as to a room with one door.
    """
    form = found.form
    if form is None or looks_up(form.tool):
        return False
    if found.elsewhere:
        return True
    away = not found.newest and not form.prefix and call.name == form.tool
    return away and (not found.shown_by or found.shown_by.startswith(f"{form.tool}("))


def _calls(form: Form, names: Sequence[str]) -> list[str]:
    """Return the calls that were not made yet; none if one would be shortened: an agent cannot make that."""
    calls = [call_line([form.call(name)]) for name in names]
    parts = [f"{form.tool}(", *[f"{name}=" for name in form.given]]
    whole = all(call.startswith(parts[0]) and all(part in call for part in parts) for call in calls)
    return calls if whole and not any("…" in call for call in calls) else []


def custom_text(name: str, steps: Sequence[int], index: int) -> str:
    """Return the text of a caller's monitor that has none of its own."""
    before = sorted({index - step for step in steps if step <= index})
    shown = "your last step" if before[:1] in ([], [0]) else f"{before[0]} steps before your last one"
    return f"The check {plain(name)} points at {shown}. Look at that again before you go on."
