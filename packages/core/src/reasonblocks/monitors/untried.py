"""Remembers lists in results and the values of arguments, to name what the agent listed, goes through, and left out."""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from struct import error as StructError
from struct import pack, unpack
from types import NoneType
from typing import NamedTuple
from zlib import crc32

from ..account.calls import LIST, SEARCH, Kind, command_of, kind_of
from ..account.sameness import hash_of
from ..types import JSON, Account, Step, ToolCall
from ..util.json import MAX_INT, storable
from .excerpts import call_line
from .forms import Form, Use, form_of_call, refused, with_use
from .listed import HEAD, LONGEST_LIST, labelled_names, lists_in
from .memory import count, table
from .offers import LONGEST_NAME, changes_nothing, may_offer, may_show, may_take
from .roles import looks_up, trust_of

BITS = 2_048
"""Bits of the set of all used values; two values that share a bit only hide an alternative."""
FEW = 96
"""Bits that are stored one by one: of more, all bits take less room."""
MAX_LISTS = 8
"""Lists that are remembered: those seen last."""
MAX_LENGTH = 700
"""Characters of all remembered lists."""
MAX_ADDED = 350
"""Characters of the lists of one result."""
USED_HEAD = 600
"""Characters of each call's arguments in which values are looked for: after that it is a text."""
MANY = 8
"""Untried members above which a list is no advice."""
NOW = 3
"""Newest steps in one of which the agent took a value from the list, or from one of its kind."""
NAMED = 3
"""Alternatives that a text names."""
MAX_CALLS = 4
"""Calls, and results, of a step in which lists are looked for, and that take from them."""
MAX_USED = 32
"""Calls of a step whose values count as used."""
MAX_PARTS = 6
"""Parts of a path that count as used: the last ones."""
MAX_CHARS = 8_000
"""Characters of the longest memory from outside that is read."""

_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>=|&!$*]+")
_EDGES = ".:-"
_QUOTES = " \"'"
_LISTS = frozenset({LIST, SEARCH})
"""The roles of a shell's command that lists."""


class Alternatives(NamedTuple):
    """Values of one list that no argument had so far, and the `form` of the call that takes them.

    `shown_by` is the call that showed the list. It is "" if that was one of several, if it failed, or if it was a move
    that cannot be made from here.

    `newest` if the list was in the last result; `seen` is the step that showed it. The list is `elsewhere` if it is
    older, and the last result has one of its kind, as each room has its doors. With `here`, every member was an
    argument before, as the directions of a map soon are, and the named ones were never that of the call after this same
    result.
    """

    names: tuple[str, ...] = ()
    newest: bool = False
    form: Form | None = None
    seen: int = -1
    elsewhere: bool = False
    here: bool = False
    shown_by: str = ""


_NONE = Alternatives()


class _List(NamedTuple):
    """One remembered list, without the members that may not be offered.

    `kind` is a hash of where it comes from, `source` the tool that showed it, `seen` the step that did so last, and
    `used` the step that took a member last.
    """

    kind: int
    source: str
    seen: int
    used: int
    call: str
    members: list[str]

    @property
    def row(self) -> list[JSON]:
        """The stored form: the fields and then the members."""
        return [*self[:5], *self.members]

    @classmethod
    def of(cls, row: list[JSON]) -> _List:
        """Return the list of a stored row."""
        return cls(*row[:5], row[5:])  # type: ignore[arg-type, call-arg]  # our own row, unchecked as every memory


def gather(step: Step, index: int, account: Account, memory: JSON, tool_roles: Mapping[str, str]) -> JSON:
    """Return the memory after this step: values that its calls used, then lists in its results.

    `account` is that with this step.
    """
    if not step.tool_calls and not step.tool_results:
        return memory
    result = account.actions[-1].exact if account.actions else 0
    kept = table(memory)
    lists, uses = _lists(kept), _uses(kept)
    used, values = _values(step.tool_calls[:MAX_USED])
    tracks = not kept or "after" in kept  # a memory that began without it does not know what was tried
    if "after" in kept:
        used |= {_after(kept["after"], value) for value in values}
    for call in step.tool_calls[:MAX_CALLS] if lists else ():
        lists, uses = _taken(lists, uses, call, index, tool_roles)
    known = {one.kind for one in lists}
    kinds = {call.id: kind_of(call, tool_roles) for call in step.tool_calls[:MAX_CALLS]}
    changes = any(kind.changes for kind in kinds.values())
    failed = account.did.failed
    new = [] if changes else list(_shown(step, index, kinds, tool_roles, known, failed=failed))
    if new and failed and len(step.tool_calls) == len(step.tool_results) == 1:
        uses = _refused(uses, step.tool_calls[0], step.tool_results[0].output, new, index, tool_roles)
    return {
        "shown": [one.row for one in (_with(lists, new) if new else lists)],
        "uses": [use.row for use in uses],
        "used": _marked(kept.get("used"), used) if used else kept.get("used"),
        "last": index if step.tool_results else count(kept, "last"),
        **({"after": result if new else kept.get("after", 0)} if tracks else {}),
    }


def memory_in(given: object) -> JSON:
    """Return a memory that came from outside; None for one that `gather` cannot have made."""
    try:
        memory = storable(given, MAX_CHARS)
        if not isinstance(memory, dict) or not isinstance(memory.get("used"), (str, NoneType)):
            return None
        _unpacked(memory.get("used"))
    except (ValueError, StructError):
        return None
    is_ours = all(type(count(memory, name)) is int for name in ("last", "after"))
    is_ours = is_ours and _are_rows(memory.get("shown"), _LIST_ROW, str)
    return memory if is_ours and _are_rows(memory.get("uses"), _USE_ROW, int) else None


_LIST_ROW: Sequence[type] = (int, str, int, int, str)
_USE_ROW: Sequence[type] = (int, int, int, str, str, str, dict)
"""The types of a stored row's first values; all others are of one type."""


def _are_rows(given: JSON, head: Sequence[type], rest: type) -> bool:
    return isinstance(given, list) and all(
        isinstance(row, list)
        and [*map(type, row[: len(head)])] == [*head]
        and all(type(value) is rest for value in row[len(head) :])
        for row in given
    )


def _lists(kept: Mapping[str, JSON]) -> list[_List]:
    return [_List.of(row) for row in kept.get("shown") or ()]  # type: ignore[union-attr, arg-type]


def _uses(kept: Mapping[str, JSON]) -> list[Use]:
    return [Use.of(row) for row in kept.get("uses") or ()]  # type: ignore[union-attr, arg-type]


def alternatives(memory: JSON, index: int) -> Alternatives:
    """Return the untried members of the newest list that the agent goes through; or else what it left out here.

    It goes through a list if one of its newest steps took a member of it, or, of a list in the last result, of one of
    its kind, as from each room's doors; and if it has used two members in one form.
    """
    kept = table(memory)
    lists, uses = _lists(kept), _uses(kept)
    used, last = _unpacked(kept.get("used")), count(kept, "last")
    here = {one.kind for one in lists if one.seen == last}
    left_here, too_far = _NONE, None
    for one in reversed(lists):
        newest = one.seen == last
        use = next((use for use in reversed(uses) if use.kind == one.kind and use.suits(one.members)), None)
        if use is None or not (one.used > index - NOW or (newest and use.last > index - NOW)):
            continue
        members = [name for name in one.members if use.allows(name)]
        names = [name for name in members if not any(_has(used, known) for known in _names_of(name.lower()))]
        if 0 < len(names) <= MANY:
            elsewhere = not newest and one.kind in here
            found = Alternatives(tuple(names[:NAMED]), newest, use.form, one.seen, elsewhere, shown_by=one.call)
            if not elsewhere or _is_in_reach(one, lists, last, use.form):
                return found
            too_far = too_far or found._replace(shown_by="")
        if not names and newest and "after" in kept and not left_here.names and not use.form.prefix:
            left = [name for name in members if not _has(used, _after(kept["after"], name))]
            left_here = Alternatives(tuple(left[:NAMED]), newest, use.form, one.seen, here=True) if left else _NONE
    return too_far or left_here


def _is_in_reach(one: _List, lists: Sequence[_List], last: int, form: Form) -> bool:
    """Return False if the list was shown by a move to a place to which no list of the last result leads."""
    if not one.call.startswith(f"{form.tool}(") or looks_up(form.tool):
        return True
    near = [name for other in lists if other.seen == last and other.kind == one.kind for name in other.members]
    return any(f'="{form.prefix}{name}"'.lower() in one.call.lower() for name in near)


def _values(calls: Sequence[ToolCall]) -> tuple[set[str], set[str]]:
    """Return all names in the arguments, and the arguments that may be one."""
    used: set[str] = set()
    every: set[str] = set()
    for call in calls:
        texts = [*_texts(call.arguments)]
        said = texts[0] if len(texts) == 1 else " ".join(texts)
        values = {value.strip(_QUOTES) for value in texts if len(value) <= LONGEST_NAME + 2}
        used.update(_WORD.findall(said[:USED_HEAD]), values, (call.name,))
        every |= values
    return used, every


def _texts(given: JSON) -> Iterator[str]:
    """Yield the values of arguments that are texts or numbers, or lists of texts."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, (dict, Mapping)):
        for value in given.values():
            if isinstance(value, str):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from [item for item in value[:LONGEST_LIST] if isinstance(item, str)]
            elif isinstance(value, (dict, Mapping)):
                yield from [item for item in value.values() if isinstance(item, str)]
            elif isinstance(value, int) and abs(value) <= MAX_INT:
                yield str(value)


def _names_of(value: str) -> tuple[str, ...]:
    """Return the names of a value in lower case: itself, and the last one and two parts of a path."""
    value = value.strip(_QUOTES).strip(_EDGES)
    parts = value.strip("/").split("/")
    if len(parts) == 1 or all(map(str.isdigit, parts)):  # a date is no path
        return (value,)
    return value, parts[-1], "/".join(parts[-2:])


def _after(result: JSON, value: str) -> str:
    """Return the name of a value as an argument of a call after a result."""
    return f"{result}>{value.strip(_QUOTES).lower().strip(_EDGES)}"


def _unpacked(encoded: JSON) -> set[int] | bytearray:
    """Return the used values: the places of the bits that are set, or all bits if they are many."""
    raw = a2b_base64(encoded) if isinstance(encoded, str) else b""
    return bytearray(raw) if len(raw) == BITS // 8 else {*unpack(f">{len(raw) // 2}H", raw)}


def _has(used: set[int] | bytearray, name: str) -> bool:
    place = crc32(name.encode("utf-8", "replace")) % BITS
    return place in used if isinstance(used, set) else used[place >> 3] >> (place & 7) & 1 == 1


def _marked(encoded: JSON, values: Iterable[str]) -> str:
    """Return the used values with these added: their names, and the folders of paths."""
    said = "\n".join(values).lower().split("\n")
    names = [value.strip(_EDGES) for value in said]
    for value in said:
        if "/" in value:
            names += (*_names_of(value), *value.split("/")[-MAX_PARTS:])
    places = [crc32(name.encode("utf-8", "replace")) % BITS for name in names]
    used = _unpacked(encoded)
    if isinstance(used, set):
        known = len(used)
        used.update(places)
        if len(used) == known and isinstance(encoded, str):
            return encoded
        if len(used) <= FEW:
            return b2a_base64(pack(f">{len(used)}H", *sorted(used)), newline=False).decode()
        places, used = [*used], bytearray(BITS // 8)
    for place in places:
        used[place >> 3] |= 1 << (place & 7)
    return b2a_base64(used, newline=False).decode()


def _taken(
    lists: list[_List], uses: list[Use], call: ToolCall, index: int, tool_roles: Mapping[str, str]
) -> tuple[list[_List], list[Use]]:
    """Return the lists and the uses after a call that may have taken a member."""
    kinds: dict[int, list[str]] = {}
    for one in lists:
        if may_take(call, one.source, tool_roles):
            kinds.setdefault(one.kind, []).extend(one.members)
    for kind, members in kinds.items():
        found = form_of_call(call, members)
        if found is not None:
            form, member = found
            uses = with_use(uses, kind, form, member, index, strict=not changes_nothing(call, tool_roles))
            lists = [one._replace(used=index) if one.kind == kind and member in one.members else one for one in lists]
    return lists, uses


def _refused(
    uses: list[Use], call: ToolCall, text: str, lists: Sequence[_List], index: int, tool_roles: Mapping[str, str]
) -> list[Use]:
    """Return the uses after an error that quotes an argument of its call and lists what it may be."""
    for one in lists:
        found = refused(call, text[:HEAD], one.members) if may_take(call, one.source, tool_roles) else None
        if found is not None:
            form, value = found
            strict = not changes_nothing(call, tool_roles)
            uses = with_use(uses, one.kind, form, value, index, strict=strict, is_sure=True)
    return uses


def _shown(
    step: Step,
    index: int,
    kinds: Mapping[str, Kind],
    tool_roles: Mapping[str, str],
    known: Collection[int],
    *,
    failed: bool,
) -> Iterator[_List]:
    """Yield the lists in the results of tools that list or read, and for a tool itself those in its own.

    A list of one member, as in a room with one door, is one of a kind that is `known`. A call that `failed` is not the
    one to go back to for its list.
    """
    calls = {call.id: call for call in step.tool_calls}
    shown_by = call_line(step.tool_calls) if len(step.tool_calls) == 1 and not failed else ""
    room = MAX_ADDED
    for result in step.tool_results[:MAX_CALLS]:
        call = calls.get(result.call_id) or ToolCall(id="", name=result.name)
        trust = trust_of(call, tool_roles)
        kind = kinds.get(result.call_id)
        shell = kind is not None and kind.shell
        lists = kind is not None and shell and bool(kind.roles) and kind.roles <= _LISTS and trust != "none"
        if not lists and not may_show(call, tool_roles):
            continue
        program = command_of(call).lstrip().partition(" ")[0] if shell else ""
        found = lists_in(result.output, quoted=trust == "full" or changes_nothing(call, tool_roles))
        alone = [(label, [name]) for label, name in labelled_names(result.output)] if known else ()
        for label, names in chain(found, alone):
            members, place = _offered(names), hash_of(f"{call.name} {program} {label}")
            room -= sum(map(len, members))
            if room < 0:
                return
            if members and (len(names) > 1 or place in known):
                yield _List(place, call.name, index, -1, shown_by, members)


def _offered(members: Sequence[str]) -> list[str]:
    """Return the members that may be offered; of a mixed list none from the root of the disk."""
    mixed = any(member[0] != "/" for member in members)
    return [member for member in members if may_offer(member) and not (mixed and member[0] == "/")]


def _with(lists: list[_List], new: list[_List]) -> list[_List]:
    """Return the lists with the new ones at the end; one that is shown again moves there and stays in use."""
    fresh = {(one.kind, *one.members): one for one in new}
    left = []
    for one in lists:
        key = (one.kind, *one.members)
        if key in fresh:
            fresh[key] = one._replace(seen=fresh[key].seen, call=fresh[key].call)
        else:
            left.append(one)
    left = [*left, *fresh.values()][-MAX_LISTS:]
    sizes = [sum(map(len, one.members)) for one in left]
    over = sum(sizes) - MAX_LENGTH
    while over > 0:
        over -= sizes.pop(0)
        del left[0]
    return left
