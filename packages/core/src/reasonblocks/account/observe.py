"""Adds a completed step to the account of its run, and decides whether the step was dead.

A step is dead if the run would be where it is without it:

- A: the same call as one since the mark, with the same result;
- B: the same message line as one of the tool's last four errors, with no mark since, or by the same refused change;
- C: a search in vain, the third in a row with this tool;
- D: the same result, of substance, to other arguments, for the third time.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from struct import pack, unpack

from ..types import JSON, Step, ToolCall, ToolResult
from ..types.account import (
    ASKED,
    BARE,
    CHANGED,
    CHECKED,
    EMPTY,
    FAILED,
    LOOKED,
    PARALLEL,
    RAN,
    REFUSED,
    SEARCHED,
    WAITING,
    Account,
    Action,
    Check,
    Did,
    Series,
)
from ..util.json import canonical
from ..util.text import ends
from .calls import FINISH, LIST, NOTE, RUN, SEARCH, Kind, kind_of
from .message import message_line
from .results import Reading, read
from .sameness import call_text, hash_of, items_of, line_digest, masked, own_values, result_digest, values_in

ACTIONS_KEPT = 32
"""Calls that are remembered: the newest ones."""
CHANGES_KEPT = 64
LETTERS_KEPT = 24
MAX_CALLS = 16
"""Calls of one step that are read from each end."""
ERRORS = 4
"""Newest errors of a tool with which a new one is compared."""
VAIN = 3
"""Searches in vain with one tool in a row, of which the last is dead."""
TOOLS_KEPT = 6
SUBSTANCE = 80
"""Characters of a result beyond which it is one of substance."""
SAME_RESULTS = 3
"""Calls with other arguments and the same result, of which the last is dead."""
UNMOVED = 8
"""Equal answers of something that runs from which on asking is dead."""
ITEMS_KEPT, SEEN = 240, 0.9
"""Lines of lists that are remembered, and the share of known ones at which a list brings nothing."""
LISTED = 4_000
"""Characters of the longest list whose lines are compared."""
CHECK_LOOP = 4
"""The same end of the same check, each after a change, from which on it is told."""
SERIES = 10
"""Values tried in vain, in one series, at which it is told."""
ATOM = 40
"""Characters of the longest value that a series tries."""
MAX_SHAPES = 4
IDS_KEPT, MAX_IDS = 3, 6
_ONCE = frozenset(
    "send pay refund book cancel transfer buy purchase return exchange post reply forward invite reserve".split()
)
"""Verbs of acts that are done once: the same one again is dead also after another change."""


@dataclass(slots=True)
class _Call:
    """One call of a step, with its result as it was read."""

    tool: int
    call: int
    kind: Kind
    reading: Reading
    result: int
    exact: int
    line: int
    items: list[int]
    arguments: JSON
    once: bool
    tool_name: str
    has_result: bool = True
    length: int = 0

    @property
    def refused(self) -> bool:
        """True for a change that failed; one that other commands followed was made."""
        return self.kind.changes and self.reading.failed and self.kind.is_single

    @property
    def flags(self) -> int:
        reading, kind = self.reading, self.kind
        return (
            FAILED * reading.failed
            | CHANGED * (kind.changes and not self.refused)
            | REFUSED * self.refused
            | CHECKED * reading.checked
            | LOOKED * kind.looks
            | SEARCHED * kind.searches
            | ASKED * kind.asks
            | EMPTY * reading.nothing
            | WAITING * reading.waiting
            | RAN * (RUN in kind.roles)
            | BARE * (not self.arguments)
        )


def observe(step: Step, account: Account, index: int, tool_roles: Mapping[str, str]) -> Account:
    """Return the account after the completed step `index`. No argument is changed."""
    turn = _turn(step)
    if turn and turn == account.turn:
        return account  # the log holds the step twice
    user = hash_of(step.user_text) if step.user_text else 0
    if user and user != account.user:
        account = replace(account, mark=index, user=user)
    account = _with_used_ids(step, account)
    letters, actions = [], []
    calls = [*_calls(step, tool_roles)]
    due = ""
    after = account
    for call in calls:
        letter, now_due, after = _judged(call, after, account, index)
        letters.append(letter)
        due = due or now_due
        actions.append(
            Action(
                index,
                call.tool,
                call.call,
                call.result,
                call.exact,
                call.line,
                call.flags | PARALLEL * (len(calls) > 1),
            )
        )
    letter = letters[-1] if letters and all(letters) else ""
    looked = bool(calls) and all(call.kind.looks for call in calls)
    did = Did(
        letter=letter,
        looked=looked,
        due=due,
        failed=any(call.reading.failed for call in calls),
        waiting=any(call.reading.waiting for call in calls),
        nothing=bool(calls) and all(call.reading.nothing for call in calls),
        changed=any(action.flags & CHANGED for action in actions),
        checked=any(call.reading.checked for call in calls),
        ran=any(RUN in call.kind.roles for call in calls),
        finished=any(FINISH in call.kind.roles for call in calls) or not step.tool_calls,
        refused=any(call.refused for call in calls),
    )
    shown = letter.lower() if looked else letter
    return replace(
        after,
        steps=account.steps + 1,
        letters=(account.letters + (shown or "."))[-LETTERS_KEPT:],
        actions=(*account.actions, *actions)[-ACTIONS_KEPT:],
        ids=_ids(step, after, index) if letter == "A" else after.ids,
        turn=turn,
        did=did,
    )


def _turn(step: Step) -> int:
    ids = [call.id for call in step.tool_calls if call.id]
    return hash_of("\0".join(ids)) if ids and len(ids) == len(step.tool_calls) and max(map(len, ids)) > 7 else 0


def _calls(step: Step, tool_roles: Mapping[str, str]) -> Sequence[_Call]:
    """Return the step's calls with their results; what came back to a step without a call counts as one call's."""
    calls = ends(step.tool_calls, MAX_CALLS)
    if not calls:
        text = (step.thought if step.thought.strip() else step.reasoning).strip()[:2_000]
        if not text and not step.tool_results:
            return []
        said = ToolCall(id="", name="", arguments=text)
        return [_call(said, _joined(step.tool_results), Kind(frozenset()))]
    by_id: dict[str, ToolResult] = {result.call_id: result for result in step.tool_results}
    left = (
        [*step.tool_results]
        if len(by_id) < len(step.tool_results) or not by_id.keys() & {call.id for call in calls}
        else None
    )
    if len(calls) == 1:
        return [_call(calls[0], _joined(step.tool_results), kind_of(calls[0], tool_roles))]
    return [
        _call(
            call,
            (left[at] if at < len(left) else None) if left is not None else by_id.get(call.id),
            kind_of(call, tool_roles),
        )
        for at, call in enumerate(calls)
    ]


def _joined(results: Sequence[ToolResult]) -> ToolResult | None:
    if len(results) <= 1:
        return results[0] if results else None
    flags = [result.is_error for result in results if result.is_error is not None]
    return ToolResult(
        call_id="", output="\n".join([result.output for result in results]), is_error=any(flags) if flags else None
    )


def _call(call: ToolCall, result: ToolResult | None, kind: Kind) -> _Call:
    reading = read(result, kind=kind) if result is not None else Reading("")
    values = own_values([call])
    listed = not kind.roles.isdisjoint((LIST, SEARCH))
    text = reading.text
    items = [hash_of(line) & 0xFFFF for line in items_of(text)] if listed and len(text) <= LISTED else []
    line = line_digest(message_line(text), values) if reading.failed else 0
    name = call.name
    return _Call(
        tool=hash_of(name if not kind.shell else f"{name} {'search' if kind.searches else ''}"),
        call=hash_of(call_text(call)) or 1,
        kind=kind,
        reading=reading,
        result=result_digest(text, values, listed=listed) if result is not None else 0,
        exact=hash_of(text) if result is not None else 0,
        line=line,
        items=items,
        arguments=call.arguments,
        once=not kind.shell and not _ONCE.isdisjoint(name.lower().replace("-", "_").split("_")),
        tool_name=name,
        has_result=result is not None,
        length=len(text),
    )


def _judged(call: _Call, now: Account, before: Account, index: int) -> tuple[str, str, Account]:
    """Return the letter of a call, what is due, and the account with what it changed. `before` is that of the turn."""
    roles = call.kind.roles
    if NOTE in roles:
        same = any(action.call == call.call and action.step >= before.mark for action in before.actions)
        return ("A" if same else ""), "", now
    made = call.kind.changes and not call.refused
    new = call.call not in before.changes
    if made and new:
        now = replace(now, mark=index, changes=(*now.changes, call.call)[-CHANGES_KEPT:])
        now = _with_check(call, now, before, index, made=True)
        return "", _due_check(now, index), now
    letter = _letter(call, before, index, made=made) if call.has_result or not call.tool_name else ""
    now, series_due, in_series = _with_series(call, now)
    if in_series and letter == "B":
        letter = "" if now.series.tried < SERIES else "B"
    now = _with_vain(call, now, before)
    if not letter and _is_vain_again(call, now):
        letter = "C"
    now = _with_check(call, now, before, index, made=False)
    if call.items:
        now = replace(now, items=_with_items(now.items, call.items))
    return letter, series_due or _due_check(now, index), now


def _letter(call: _Call, before: Account, index: int, *, made: bool) -> str:
    reading, kind = call.reading, call.kind
    same = [action for action in before.actions if action.call == call.call]
    since = [action for action in same if action.step >= before.mark]
    if reading.waiting or (kind.asks and not reading.failed):
        return "A" if _is_unmoved(call, same) else ""
    if made:
        again = same if call.once else since
        return "A" if any(action.result == call.result or not action.flags & FAILED for action in again) else ""
    if since and _is_same_result(call, since, before) and not _looks_after_refusal(call, since[-1], before):
        return "A"
    if reading.failed and _fails_again(call, before):
        return "B"
    if _is_same_again(call, before):
        return "D"
    return ""


def _is_unmoved(call: _Call, same: Sequence[Action]) -> bool:
    newest = same[-(UNMOVED - 1) :]
    return len(newest) == UNMOVED - 1 and all(action.exact == call.exact for action in newest)


def _is_same_result(call: _Call, since: Sequence[Action], before: Account) -> bool:
    if any(action.result == call.result for action in since):
        return True
    return bool(call.items) and _share_seen(before.items, call.items) >= SEEN and not call.reading.failed


def _looks_after_refusal(call: _Call, last: Action, before: Account) -> bool:
    """Return True for the first look at something since a change, not made before, was refused."""
    known = {action.call for action in before.actions if action.step <= last.step}
    since = [action for action in before.actions if action.step > last.step and action.flags & REFUSED]
    return call.kind.looks and any(action.call not in known for action in since)


def _fails_again(call: _Call, before: Account) -> bool:
    errors = [action for action in before.actions if action.tool == call.tool and action.flags & FAILED][-ERRORS:]
    alike = [action for action in errors if call.line and action.line == call.line]
    return any(action.step >= before.mark or (call.refused and action.call == call.call) for action in alike)


def _is_same_again(call: _Call, before: Account) -> bool:
    kind, reading = call.kind, call.reading
    if kind.changes or reading.checked or reading.failed or call.length <= SUBSTANCE:
        return False
    alike = {action.call for action in before.actions if action.result == call.result and action.step >= before.mark}
    return len(alike - {call.call}) >= SAME_RESULTS - 1


def _with_vain(call: _Call, now: Account, before: Account) -> Account:
    if not call.kind.searches or call.reading.failed:
        return now
    seen = bool(call.items) and _share_seen(before.items, call.items) >= SEEN
    known = dict(now.vain)
    count = known.pop(call.tool, 0) + 1 if call.reading.nothing or seen else 0
    return replace(now, vain=(*known.items(), (call.tool, count))[-TOOLS_KEPT:])


def _is_vain_again(call: _Call, now: Account) -> bool:
    return call.kind.searches and dict(now.vain).get(call.tool, 0) >= VAIN


def _with_series(call: _Call, now: Account) -> tuple[Account, str, bool]:
    """Return the account, what is due, and whether the call goes on with a series of values tried in vain."""
    reading, series = call.reading, now.series
    if call.kind.shell or not (reading.failed or reading.nothing):
        return now, "", False
    line = call.line or line_digest(
        masked(message_line(reading.text), own_values([ToolCall(id="", name="", arguments=call.arguments)]))
    )
    shapes = _shapes(call)
    shared = tuple([shape for shape in shapes if shape in series.shapes])
    new = not any(action.call == call.call for action in now.actions)
    if shared and new and line == series.line:
        tried = series.tried + 1
        return replace(now, series=Series(shared, line, tried)), "series" if tried == SERIES else "", True
    return replace(now, series=Series(shapes, line, 1)), "", False


def _shapes(call: _Call) -> tuple[int, ...]:
    """Return hashes of the call without one short value, for each of its first few."""
    given = call.arguments
    if not isinstance(given, Mapping):
        given = {"": given}
    atoms = [name for name, value in given.items() if _is_atom(value)][:MAX_SHAPES]
    rest = [{key: value for key, value in given.items() if key != name} for name in atoms]
    return tuple([hash_of(f"{call.tool} {name} {canonical(others)}") for name, others in zip(atoms, rest, strict=True)])


def _is_atom(value: JSON) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= ATOM and not any(map(str.isspace, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _with_check(call: _Call, now: Account, before: Account, index: int, *, made: bool) -> Account:
    """Return the account with the newest check, and with the changes since then."""
    check = now.check
    place = _place(call) if made else 0
    if call.reading.checked and not call.kind.looks:
        line = call.line if call.reading.failed else 0
        row, where = 1, 0
        if (
            check is not None
            and line
            and check.line == line
            and (check.call == call.call or made)
            and (check.since or made)
        ):
            where = check.place if not made or check.place in (0, place) else -1
            row = check.row + 1 if where >= 0 else 2
        return replace(now, check=Check(index, call.call, line, call.reading.failed, row, max(0, where)))
    if made and check is not None:
        where = place if check.place in (0, place) else -1
        return replace(now, check=check._replace(since=check.since + 1, place=where if check.row else place))
    return now


def _due_check(now: Account, index: int) -> str:
    check = now.check
    return "check" if check is not None and check.step == index and check.row >= CHECK_LOOP and check.place >= 0 else ""


def _place(call: _Call) -> int:
    """Return the hash of the file that a change is in; 0 if it cannot be told."""
    given = call.arguments
    if isinstance(given, Mapping):
        for name, value in given.items():
            if isinstance(value, str) and str(name).lower() in (
                "path",
                "file",
                "file_path",
                "filename",
                "file_name",
                "notebook_path",
                "target_file",
            ):
                return hash_of(value.rsplit("/", 1)[-1]) or 1
    for word in call.kind.command[:1_000].split():
        name = word.strip("'\"").rsplit("/", 1)[-1]
        stem, dot, ending = name.rpartition(".")
        if dot and stem and 0 < len(ending) <= 4 and ending.isalpha():
            return hash_of(name) or 1
    return 0


def _share_seen(known: str, items: Sequence[int]) -> float:
    seen = set(_unpacked(known))
    return sum(item in seen for item in items) / len(items)


def _unpacked(known: str) -> tuple[int, ...]:
    raw = a2b_base64(known)
    return unpack(f">{len(raw) // 2}H", raw)


def _with_items(known: str, items: Sequence[int]) -> str:
    old = _unpacked(known)
    fresh = dict.fromkeys(items)
    kept = (*[item for item in old if item not in fresh], *fresh)[-ITEMS_KEPT:]
    return b2a_base64(pack(f">{len(kept)}H", *kept), newline=False).decode()


def _ids(step: Step, account: Account, index: int) -> tuple[tuple[int, ...], ...]:
    """Remember the words with a digit in a dead step's result: a later call that uses one shows that it was news."""
    words = [word.strip(".,;:()[]{}\"'`") for result in step.tool_results[:2] for word in result.output[:600].split()]
    marked = [hash_of(word) for word in words if len(word) >= 4 and any(map(str.isdigit, word))][:MAX_IDS]
    return (*account.ids, (index, *marked))[-IDS_KEPT:] if marked else account.ids


def _with_used_ids(step: Step, account: Account) -> Account:
    """Return the account in which a dead step is not, whose result brought an id that this step's calls use."""
    if not account.ids:
        return account
    used = {hash_of(value) for call in step.tool_calls[:MAX_CALLS] for value in values_in(call.arguments)}
    if any(action.call in {hash_of(call_text(call)) for call in step.tool_calls} for action in account.actions):
        return account  # an old call brings no new id
    letters = [*account.letters]
    for index, *marked in account.ids:
        at = index - account.steps
        if not used.isdisjoint(marked) and -len(letters) <= at < 0:
            letters[at] = "."
    return replace(account, letters="".join(letters))
