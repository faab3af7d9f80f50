"""Adds a completed step to the account of its run, and decides whether the step was dead.

A step is dead if the run would be where it is without it:

- A: the same call as one since the mark, with the same result;
- B: the same message line as one of the tool's last four errors, with no mark since, or by the same refused change;
- C: a search in vain, the third in a row with this tool;
- D: the same result, of substance, to other arguments, for the third time.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from struct import pack, unpack

from ..types import JSON, Step, ToolCall, ToolResult
from ..types.account import FAILED, REFUSED, Account, Action, Check, Did, Series
from ..util.json import canonical
from ..util.text import ends
from .calls import FINISH, LIST, NOTE, SEARCH, Kind, kind_of, parts_of, run_in
from .message import message_line
from .results import Reading, read_result
from .sameness import call_text, check_digest, hash_of, items_of, line_digest, own_values, result_digest, values_in

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
UNIQUE_ID = 8
"""Characters of the shortest id by which a step is recognised when the log holds it twice."""
_FILE_ARGUMENTS = frozenset("path file filepath filename notebookpath targetfile".split())
_RECORDS = re.compile(r"\s*(?:cd\s[^&;\n]{1,200}(?:&&|;)\s*)?git (?:add|commit|push|tag|diff|format-patch)\b")
"""Commands that write down what the files are, and do not change them."""
_TIDIES = re.compile(r"(?:\s*(?:cd|rm|rmdir)\s[^&;|\n]*(?:&&|;|\n|\Z))+\s*\Z")
"""Commands that only take files away."""
_FILE_VERBS = frozenset("edit write replace insert patch overwrite".split())
_PROGRAM = re.compile(r"(?:/\S{1,60}/)?([\w.+-]{1,40}): (?=[^:]+: )")
"""The program that a complaint of a shell begins with."""
_ONCE = frozenset(
    "send pay refund book cancel transfer buy purchase return exchange post reply forward invite reserve".split()
)
"""Verbs of acts that are done once: the same one again is dead also after another change."""


@dataclass(slots=True)
class _Call:
    """One call of a step, with its result as it was read."""

    name: str
    tool: int
    call: int
    kind: Kind
    reading: Reading
    result: int
    exact: int
    line: int
    red: int
    """The digest of a failed check's message line."""
    items: list[int]
    arguments: JSON
    once: bool
    """It is an act that is done once."""
    ended: bool
    """It has a result, or is no call: without a result nothing is known of a call."""
    length: int
    refused: bool
    """It is a change that failed; one that other commands followed was made."""

    @property
    def made(self) -> bool:
        """True for a change that was made."""
        return self.kind.changes and not self.refused

    def action(self, index: int) -> Action:
        flags = FAILED * self.reading.failed | REFUSED * self.refused
        return Action(index, self.tool, self.call, self.result, self.exact, self.line, flags)


def observe(step: Step, account: Account, index: int, tool_roles: Mapping[str, str]) -> Account:
    """Return the account after the completed step `index`. No argument is changed."""
    turn = _turn(step)
    if turn and turn == account.turn:
        return account  # the log holds the step twice
    user = hash_of(step.user_text) if step.user_text else 0
    if user and user != account.user:
        account = replace(account, mark=index, user=user)
    account = _with_used_ids(step, account)
    calls = _calls(step, tool_roles)
    letters, due, after = [], "", account
    for call in calls:
        letter, now_due, after = _judged(call, after, account, index)
        letters.append(letter)
        due = due or now_due
    did = _did(calls, letters[-1] if letters and all(letters) else "", due)
    shown = did.letter.lower() if did.looked else did.letter
    return replace(
        after,
        steps=account.steps + 1,
        tested=account.tested or any(call.reading.tested for call in calls),
        letters=(account.letters + (shown or "."))[-LETTERS_KEPT:],
        actions=(*account.actions, *[call.action(index) for call in calls])[-ACTIONS_KEPT:],
        ids=_ids(step, after, index) if did.letter == "A" else after.ids,
        turn=turn,
        did=did,
    )


def _did(calls: Sequence[_Call], letter: str, due: str) -> Did:
    readings, kinds = [call.reading for call in calls], [call.kind for call in calls]
    return Did(
        letter=letter,
        looked=bool(calls) and all(kind.looks for kind in kinds),
        due=due,
        failed=any(reading.failed for reading in readings),
        waiting=any(reading.waiting for reading in readings),
        nothing=bool(calls) and all(reading.nothing for reading in readings),
        changed=any(call.made for call in calls),
        checked=any(reading.checked for reading in readings),
        finished=any(FINISH in kind.roles for kind in kinds) or not any(call.name for call in calls),
        refused=any(call.refused for call in calls),
    )


def _turn(step: Step) -> int:
    """Return a hash of the calls' ids; 0 for ids that may not be unique, such as "1"."""
    ids = [call.id for call in step.tool_calls if call.id]
    if not ids or len(ids) < len(step.tool_calls) or max(map(len, ids)) < UNIQUE_ID:
        return 0
    return hash_of("\0".join(ids))


def _calls(step: Step, tool_roles: Mapping[str, str]) -> Sequence[_Call]:
    """Return the step's calls with their results; what came back to a step without a call counts as one call's."""
    if not step.tool_calls:
        text = (step.thought if step.thought.strip() else step.reasoning).strip()[:2_000]
        if not text and not step.tool_results:
            return []
        said = ToolCall(id="", name="", arguments=text)
        return [_call(said, _joined(step.tool_results), Kind(frozenset()))]
    return [_call(call, result, kind_of(call, tool_roles)) for call, result in calls_with_results(step)]


def calls_with_results(step: Step) -> Sequence[tuple[ToolCall, ToolResult | None]]:
    """Return the step's calls, at most `MAX_CALLS` from each end, each with its result; None if it has none."""
    calls = ends(step.tool_calls, MAX_CALLS)
    if len(calls) == 1:
        return [(calls[0], _joined(step.tool_results))]
    return list(zip(calls, results_of(calls, step.tool_results), strict=True))


def results_of(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[ToolResult | None]:
    """Return each call's result, by its id; by its place if the ids do not tell."""
    by_id = {result.call_id: result for result in results}
    if len(by_id) == len(results) and by_id.keys() & {call.id for call in calls}:
        return [by_id.get(call.id) for call in calls]
    return [results[at] if at < len(results) else None for at in range(len(calls))]


def _joined(results: Sequence[ToolResult]) -> ToolResult | None:
    if len(results) <= 1:
        return results[0] if results else None
    flags = [result.is_error for result in results if result.is_error is not None]
    return ToolResult(
        call_id="", output="\n".join([result.output for result in results]), is_error=any(flags) if flags else None
    )


def tools_of(name: str) -> frozenset[int]:
    """Return the hashes by which the calls of a tool are told apart: a shell's searches have one of their own."""
    return frozenset([hash_of(said) for said in (name, f"{name} ", f"{name} search")])


def _call(call: ToolCall, result: ToolResult | None, kind: Kind) -> _Call:
    reading = read_result(result, kind=kind, given=call.arguments) if result is not None else Reading("")
    values = own_values(call.arguments)
    listed = not kind.roles.isdisjoint((LIST, SEARCH))
    text = reading.text
    items = [hash_of(line) & 0xFFFF for line in items_of(text)] if listed and len(text) <= LISTED else []
    said = message_line(text) if reading.failed else ""
    if kind.shell and (program := _PROGRAM.match(said)) and program[1] in kind.command:
        said = said[program.end() :]  # the same refusal, whatever program meets it
    name = call.name
    return _Call(
        name=name,
        tool=hash_of(name if not kind.shell else f"{name} {'search' if kind.searches else ''}"),
        call=hash_of(call_text(call)) or 1,
        kind=kind,
        reading=reading,
        result=result_digest(text, values, listed=listed) if result is not None else 0,
        exact=hash_of(text) if result is not None else 0,
        line=line_digest(said, values),
        red=check_digest(said, values) if reading.checked else 0,
        items=items,
        arguments=call.arguments,
        once=not kind.shell and not _ONCE.isdisjoint(name.lower().replace("-", "_").split("_")),
        ended=result is not None or not name,
        length=len(text),
        refused=kind.changes and reading.failed and kind.is_single,
    )


def _judged(call: _Call, now: Account, before: Account, index: int) -> tuple[str, str, Account]:
    """Return the letter of a call, what is due, and the account with what it changed. `before` is that of the turn."""
    if NOTE in call.kind.roles:
        same = any(action.call == call.call and action.step >= before.mark for action in before.actions)
        return ("A" if same else ""), "", now
    if call.made:
        now = replace(now, edits=now.edits + edits_files(call.name, call.arguments, call.kind))
    if call.made and call.call not in before.changes:
        now = replace(now, mark=index, changes=(*now.changes, call.call)[-CHANGES_KEPT:])
        now = _with_check(call, now, index, changed=True)
        return "", _due_check(now, index), now
    letter = _letter(call, before) if call.ended else ""
    now, in_series = _with_series(call, now)
    if in_series and letter == "B" and now.series.tried < SERIES:
        letter = ""
    now, in_vain = _with_vain(call, now, before)
    now = _with_check(call, now, index, changed=call.made)
    if call.items:
        now = replace(now, items=_with_items(now.items, call.items))
    due = "series" if in_series and now.series.tried == SERIES else _due_check(now, index)
    return letter or ("C" if in_vain else ""), due, now


def _letter(call: _Call, before: Account) -> str:
    """Return A, B or D; C is decided by the searches before."""
    reading, kind = call.reading, call.kind
    same = [action for action in before.actions if action.call == call.call]
    since = [action for action in same if action.step >= before.mark]
    if reading.waiting or (kind.asks and not reading.failed):
        return "A" if _is_unmoved(call, same) else ""
    if call.made:
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
    return _lists_known(call, before) and not call.reading.failed


def _lists_known(call: _Call, before: Account) -> bool:
    """Return True for a list of which nearly all lines were seen before."""
    if not call.items:
        return False
    seen = set(_unpacked(before.items))
    return sum(item in seen for item in call.items) >= SEEN * len(call.items)


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


def _with_vain(call: _Call, now: Account, before: Account) -> tuple[Account, bool]:
    """Return the account with this tool's searches in vain in a row, and whether they are too many."""
    if not call.kind.searches or call.reading.failed:
        return now, False
    known = dict(now.vain)
    count = known.pop(call.tool, 0) + 1 if call.reading.nothing or _lists_known(call, before) else 0
    return replace(now, vain=(*known.items(), (call.tool, count))[-TOOLS_KEPT:]), count >= VAIN


def _with_series(call: _Call, now: Account) -> tuple[Account, bool]:
    """Return the account, and whether the call goes on with a series of values tried in vain."""
    reading, series = call.reading, now.series
    if call.kind.shell or not (reading.failed or reading.nothing):
        return now, False
    line = call.line or line_digest(message_line(reading.text), own_values(call.arguments))
    shapes = _shapes(call)
    shared = tuple([shape for shape in shapes if shape in series.shapes])
    new = not any(action.call == call.call for action in now.actions)
    if shared and new and line == series.line:
        return replace(now, series=Series(shared, line, series.tried + 1)), True
    return replace(now, series=Series(shapes, line, 1)), False


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


def _with_check(call: _Call, now: Account, index: int, *, changed: bool) -> Account:
    """Return the account with the newest check, or with one more change after it."""
    check = now.check
    changed = changed and not only_records(call.kind)
    if call.reading.checked and not call.kind.looks:
        ran = hash_of(run_in(call.kind.command)) if call.kind.shell else call.call
        again = check is not None and check.call == ran and check.line == call.red and (changed or check.since > 0)
        row = check.row + 1 if check is not None and again and call.red else 1
        return replace(now, check=Check(index, ran, call.red, call.reading.failed, row), edits=0)
    return replace(now, check=check._replace(since=check.since + 1)) if changed and check is not None else now


def _due_check(now: Account, index: int) -> str:
    check = now.check
    return "check" if check is not None and check.step == index and check.row >= CHECK_LOOP else ""


def only_records(kind: Kind) -> bool:
    """Return True for a command that only writes down what the files are, or takes files away."""
    return kind.shell and (_RECORDS.match(kind.command) or _TIDIES.match(kind.command)) is not None


def edits_files(name: str, given: JSON, kind: Kind) -> bool:
    """Return True for a change of files that a check should follow: not one that records or tidies up."""
    return not only_records(kind) and (
        _names_file(given, kind.command) or not (kind.shell or _FILE_VERBS.isdisjoint(parts_of(name)))
    )


def _names_file(given: JSON, command: str) -> bool:
    """Return True if an argument is for a file, or a word of the command looks like one."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            if isinstance(value, str) and str(name).lower().replace("_", "") in _FILE_ARGUMENTS:
                return True
    for word in command[:1_000].split():
        name = word.strip("'\"").rsplit("/", 1)[-1]
        stem, dot, ending = name.rpartition(".")
        if dot and stem and 0 < len(ending) <= 4 and ending.isalpha():
            return True
    return False


def _unpacked(known: str) -> tuple[int, ...]:
    raw = a2b_base64(known)
    return unpack(f">{len(raw) // 2}H", raw)


def _with_items(known: str, items: Sequence[int]) -> str:
    old = _unpacked(known)
    fresh = dict.fromkeys(items)
    kept = (*[item for item in old if item not in fresh], *fresh)[-ITEMS_KEPT:]
    return b2a_base64(pack(f">{len(kept)}H", *kept), newline=False).decode()


def _ids(step: Step, account: Account, index: int) -> tuple[tuple[int, ...], ...]:
    """Return the ids with the words of a dead step's result that have a digit: a call that uses one shows its news."""
    words = [word.strip(".,;:()[]{}\"'`") for result in step.tool_results[:2] for word in result.output[:600].split()]
    marked = [hash_of(word) for word in words if len(word) >= 4 and any(map(str.isdigit, word))][:MAX_IDS]
    return (*account.ids, (index, *marked))[-IDS_KEPT:] if marked else account.ids


def _with_used_ids(step: Step, account: Account) -> Account:
    """Return the account in which a dead step is not, whose result brought an id that this step's calls use."""
    if not account.ids:
        return account
    calls = {hash_of(call_text(call)) for call in step.tool_calls[:MAX_CALLS]}
    if any(action.call in calls for action in account.actions):
        return account  # an old call brings no new id
    used = {hash_of(value) for call in step.tool_calls[:MAX_CALLS] for value in values_in(call.arguments)}
    letters = [*account.letters]
    for index, *marked in account.ids:
        at = index - account.steps
        if not used.isdisjoint(marked) and -len(letters) <= at < 0:
            letters[at] = "."
    return replace(account, letters="".join(letters))
