"""Remembers lists in results and the values of arguments, to name what the agent listed, goes through, and left out."""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import pack, unpack
from typing import NamedTuple
from zlib import crc32

from .._json import MAX_INT
from ..types import JSON, Step, ToolCall
from .arguments import command_of
from .features import Features
from .forms import Form, form_of, with_forms
from .listed import LONGEST_LIST, LONGEST_NAME, SHORT, lists_in
from .memory import count, rows, table
from .outcome import hash_of, says_nothing
from .roles import acts_on, is_shell, trust_of

OWN_MEMORY = "_untried"
"""The key of this memory among those of the monitors; snapshots have it."""

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
MAX_KINDS = 12
"""Kinds of lists from which the agent took values: those used last."""
USED_HEAD = 600
"""Characters of each call's arguments in which values are looked for: after that it is a text."""
SHORT_COMMAND = 300
"""Characters of the longest command whose words are values."""
MANY = 8
"""Untried members above which a list is no advice."""
NOW = 3
"""Newest steps in one of which the agent took a value from the list, or from one of its kind."""
TAKEN = 2
"""Points from which on a list is in use: a whole argument counts two, another word of a command than before one."""
OFFERED = -1
"""Points of a list in an error."""
SUGGESTED = -2
"""Points of a list beside the words that nothing was found."""
LISTED = -3
"""Points of a list that is all that a listing brought."""
ANSWERED = 3
"""Points of a list in an error from which the agent took a member."""
NAMED = 3
"""Alternatives that a text names."""
LABEL = 3
"""Words before the colon of a result that is one labelled list."""

MAX_CALLS = 4
"""Calls, and results, of a step in which lists are looked for, and that take from them."""
MAX_USED = 32
"""Calls of a step whose values count as used."""
MAX_PARTS = 6
"""Parts of a path that count as used: the last ones."""

_WORD = re.compile(r"[^\s\"'`,;()\[\]{}<>=|&!$*]+")
_LISTS = re.compile(r"list|glob|\bls\b|\bdir\b|tree", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!;]\s|\n")
_EDGES = ".:-"
_QUOTES = " \"'"
_READ = frozenset({"read"})
_LOOK = frozenset({"read", "search"})


class Alternatives(NamedTuple):
    """Values of one list that no argument had so far.

    `newest` if the list was in the last result; `offered` if an error offered it, and that is the last result, or the
    last call took a member. `form` is the call that took a member of such a list last, or whose error or result in vain
    has the list; None if it is not clear which of its arguments takes a member. `seen` is the step that showed the
    list. The list is `elsewhere` if it is older, and the last result has one of its kind, as each room has its doors.
    With `here`, every member was an argument before, as the directions of a map soon are, and the named ones were never
    that of the call after this same result.
    """

    names: tuple[str, ...] = ()
    newest: bool = False
    offered: bool = False
    form: Form | None = None
    seen: int = -1
    elsewhere: bool = False
    here: bool = False


_NONE = Alternatives()


class _List(NamedTuple):
    """One remembered list.

    `kind` is a hash of where it comes from, `seen` the step that showed it last, `used` the step that took a member
    last, `points` how much of it was taken, and `place` that of the member taken last.
    """

    kind: int
    seen: int
    used: int
    points: int
    place: int
    members: list[str]

    @property
    def row(self) -> list[JSON]:
        """The stored form: the fields and then the members."""
        return [*self[:5], *self.members]

    @classmethod
    def of(cls, row: list[JSON]) -> _List:
        """Return the list of a stored row."""
        return cls(*row[:5], row[5:])  # type: ignore[arg-type, call-arg]  # our own row, unchecked as every memory


def gather(features: Features, step: Step, memory: JSON, tool_roles: Mapping[str, str]) -> JSON:
    """Return the memory after this step: values that its calls used, then lists in its results."""
    if not step.tool_calls and not step.tool_results:
        return memory
    kept = table(memory)
    before: list[list[JSON]] = kept.get("lists") or []  # type: ignore[assignment]
    kinds = rows(kept, "kinds")
    looks = "edit" not in features.roles
    used, values, whole, words = _values(step.tool_calls[:MAX_USED], looks=looks)
    tracks = not kept or "after" in kept  # a memory that began without it does not know what was tried
    if "after" in kept:
        used |= {_after(kept["after"], value) for value in values}
    if before and (whole or words):
        before, kinds = _taken(before, kinds, whole, words, features.index)
    new = list(_shown(features, step, tool_roles)) if looks else []
    forms: list[list[JSON]] = kept.get("forms") or []  # type: ignore[assignment]
    reads = not features.shell or (features.roles and {*features.roles} <= _LOOK)
    if looks and reads and len(step.tool_calls) == 1 and not acts_on(step.tool_calls[0].name):
        taken = {one.kind: one for row in before if (one := _List.of(row)).used == features.index}
        members: dict[JSON, list[str]] = {kind: one.members for kind, one in taken.items()}
        offered = [kind for kind, one in taken.items() if one.points == ANSWERED]
        refused = [one.kind for one in new if one.points in (OFFERED, SUGGESTED)]
        forms = with_forms(forms, step.tool_calls[0], step.tool_results, refused, members, offered)
    return {
        "lists": _with(before, new) if new else before,
        "kinds": kinds,
        "forms": forms,
        "used": _marked(kept.get("used"), used) if used else kept.get("used"),
        "last": features.index if step.tool_results else count(kept, "last"),
        **({"after": (features.result or 0) if new else kept.get("after", 0)} if tracks else {}),
    }


def alternatives(memory: JSON, index: int) -> Alternatives:
    """Return the untried members of the newest list that the agent takes values from; or none.

    A list in the last result is also in use if the agent takes values from lists of its kind, as from each room's
    doors, or if that result is an error, which offers values that are valid. If no list is in use, what the last
    listing or a search in vain has brought stands for it, and then what was not tried after the last result.
    """
    kept = table(memory)
    lists: list[list[JSON]] = kept.get("lists") or []  # type: ignore[assignment]
    used, last = _unpacked(kept.get("used")), count(kept, "last")
    kinds = {kind for kind, step in rows(kept, "kinds") if step > index - NOW}
    forms: list[list[JSON]] = kept.get("forms") or []  # type: ignore[assignment]
    here = {row[0] for row in lists if row[1] == last}
    suggested, left_here = _NONE, _NONE
    for one in map(_List.of, reversed(lists)):
        newest = one.seen == last
        offered = one.points in (OFFERED, ANSWERED) and (newest or one.used == index)
        in_use = one.points >= TAKEN and one.used > index - NOW
        is_meant = in_use or offered or (newest and one.kind in kinds)
        is_there = (newest and one.points == LISTED) or (one.seen > index - NOW and one.points == SUGGESTED)
        if not (is_meant or (is_there and not suggested.names)):
            continue
        names = [name for name in one.members if not any(_has(used, known) for known in _names_of(name.lower()))]
        if 0 < len(names) <= (LONGEST_LIST if offered else MANY):
            form = form_of(forms, one.kind, [row[0] for row in lists if {*names} <= {*row[5:]}])
            elsewhere = not newest and one.kind in here
            found = Alternatives(tuple(names[:NAMED]), newest, offered, form, one.seen, elsewhere)
            if is_meant:
                return found
            suggested = found
        elif not names and is_meant and newest and not offered and "after" in kept and not left_here.names:
            left = [name for name in one.members if not _has(used, _after(kept["after"], name))]
            if left and (form := form_of(forms, one.kind, ())) is not None and not form.prefix:
                left_here = Alternatives(tuple(left[:NAMED]), newest, form=form, seen=one.seen, here=True)
    return suggested if suggested.names else left_here


def _values(calls: Sequence[ToolCall], *, looks: bool) -> tuple[set[str], set[str], set[str], set[str]]:
    """Return all names in the arguments, the arguments that may be one, those that are taken, and words of commands.

    Only calls that look, and do nothing to what they name, take values from lists.
    """
    used: set[str] = set()
    every: set[str] = set()
    whole: set[str] = set()
    words: set[str] = set()
    for at, call in enumerate(calls):
        texts = [*_texts(call.arguments)]
        said = texts[0] if len(texts) == 1 else " ".join(texts)
        found = {*_WORD.findall(said[:USED_HEAD])}
        values = {value.strip(_QUOTES) for value in texts if len(value) <= LONGEST_NAME + 2}
        used.update(found, values, (call.name,))
        every |= values
        if looks and at < MAX_CALLS and not acts_on(call.name):
            whole |= values
            if len(said) <= SHORT_COMMAND and (is_shell(call.name) or (_is_table(call.arguments) and command_of(call))):
                words |= found
    return used, every, _with_ends(whole), _with_ends(words)


def _with_ends(values: set[str]) -> set[str]:
    """Return the values, and the last part of each path."""
    return {*values, *[value.rstrip("/").rpartition("/")[2] for value in values if "/" in value]}


def _is_table(given: JSON) -> bool:
    return isinstance(given, (dict, Mapping))


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


def _place(name: str) -> int:
    return crc32(name.encode("utf-8", "replace")) % BITS


def _unpacked(encoded: JSON) -> set[int] | bytearray:
    """Return the used values: the places of the bits that are set, or all bits if they are many."""
    raw = a2b_base64(encoded) if isinstance(encoded, str) else b""
    return bytearray(raw) if len(raw) == BITS // 8 else {*unpack(f">{len(raw) // 2}H", raw)}


def _has(used: set[int] | bytearray, name: str) -> bool:
    place = _place(name)
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
    lists: list[list[JSON]], kinds: list[list[int]], whole: set[str], words: set[str], index: int
) -> tuple[list[list[JSON]], list[list[int]]]:
    """Return the lists and kinds with the members that this step took."""
    lists, said = [*lists], whole | words
    for at, row in enumerate(lists):
        if said.isdisjoint(row):  # its first five items are numbers: no value equals them
            continue
        one = _List.of(row)
        place = next(place for place, member in enumerate(one.members) if member in said)
        points = TAKEN if one.members[place] in whole else max(0, one.points) + (place != one.place)
        most = ANSWERED if points >= TAKEN and one.points in (OFFERED, ANSWERED) else min(TAKEN, points)
        lists[at] = one._replace(used=index, points=most, place=place).row
        if points >= TAKEN:
            kinds = [*[kept for kept in kinds if kept[0] != one.kind], [one.kind, index]][-MAX_KINDS:]
    return lists, kinds


def _shown(features: Features, step: Step, tool_roles: Mapping[str, str]) -> Iterator[_List]:
    """Yield the lists in the results; none of a tool that returns other people's text."""
    calls = {call.id: call for call in step.tool_calls}
    code = features.shell and features.roles == _READ  # a file that a shell shows
    offers = features.failing and not features.shell and "test" not in features.roles
    room = MAX_ADDED
    for result in step.tool_results[:MAX_CALLS]:
        call = calls.get(result.call_id) or ToolCall(id="", name=result.name)
        trust = trust_of(call, tool_roles)
        if trust == "none":
            continue
        points = OFFERED if offers and len(result.output) <= SHORT and "Traceback" not in result.output else 0
        lists = "search" in features.roles or _LISTS.search(call.name) is not None
        program = command_of(call).lstrip().partition(" ")[0] if features.shell else ""
        for label, members in lists_in(result.output, quoted=trust == "full", code=code):
            room -= sum(map(len, members))
            if room < 0:
                return
            found = points if points or features.failing else _points(result.output, members, is_listing=lists)
            kind = hash_of(f"{call.name} {program} {label}")
            yield _List(kind, features.index, -1, found, -1, members)


def _points(output: str, members: Sequence[str], *, is_listing: bool) -> int:
    """Return the points of a list of which nothing was taken yet."""
    if _found_nothing(output):
        return SUGGESTED
    return LISTED if is_listing and _is_all(output, members) else 0


def _found_nothing(output: str) -> bool:
    """Return True if the first sentence says that nothing was found."""
    return len(output) <= SHORT and says_nothing(_SENTENCE_END.split(output, maxsplit=1)[0])


def _is_all(output: str, members: Sequence[str]) -> bool:
    """Return True if the list is the whole result: a member in each line, one array, or a label and the members."""
    if len(output) > SHORT:
        return False
    lines = [line for line in output.split("\n") if line.strip()]
    if len(lines) == 1:
        bare = output.strip()
        label, colon, after = bare.partition(": ")
        if colon and len(label.split()) <= LABEL and after.count(", ") == len(members) - 1:
            return True
        return bare[:1] == "[" and bare[-1:] == "]" and "{" not in bare
    return len(lines) == len(members) and all(member in line for member, line in zip(members, lines))


def _shown_again(old: _List, new: _List) -> _List:
    """Return a list that is shown again: it stays in use, or else counts as what shows it now."""
    in_use = old.used > new.seen - NOW or old.points == ANSWERED
    return old._replace(seen=new.seen, points=old.points if in_use or not new.points else new.points)


def _with(lists: list[list[JSON]], new: list[_List]) -> list[list[JSON]]:
    """Return the lists with the new ones at the end; one that is shown again moves there and stays in use."""
    fresh = {(one.kind, *one.members): one for one in new}
    left = []
    for row in lists:
        key = (row[0], *row[5:])
        if key in fresh:
            fresh[key] = _shown_again(_List.of(row), fresh[key])
        else:
            left.append(row)
    left = [*left, *[one.row for one in fresh.values()]][-MAX_LISTS:]
    sizes = [sum([len(str(member)) for member in row[5:]]) for row in left]
    over = sum(sizes) - MAX_LENGTH
    while over > 0:
        over -= sizes.pop(0)
        del left[0]
    return left
