"""Remembers the calls that take members of lists, so that a text can write what was not tried yet as calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..account.sameness import hash_of
from ..types import JSON, ToolCall
from ..util.json import MAX_INT
from .offers import alike, count_of_words, may_fill

TWO = 2
"""Members that an agent has used in one form, from which on others may be offered."""
MAX_FORMS = 3
"""Forms that are remembered: those used last."""
MAX_FORM = 80
"""Characters of the longest remembered call."""
MAX_TAKEN = 8
"""Members of each form that are remembered as used."""
_BITS = 0xFFFFFF
_SURE = 0
"""Stands among the members that were taken for an error that says which argument takes them."""

_ARGUMENT = re.compile(r"[A-Za-z_][\w-]{0,23}", re.ASCII)
_SECRET = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
"""Names of arguments whose values are not kept."""
_FOLDER = re.compile(r"(?:[\w.@~:+-]*/)*")
"""Matches the characters before a member in an argument."""


class Form(NamedTuple):
    """A call: the argument that takes a member of a list, the folder before it there, and the rest.

    `given` has all arguments of a call with several, in their order; that of `argument` does not count.
    """

    tool: str
    argument: str
    prefix: str = ""
    given: Mapping[str, JSON] = MappingProxyType({})

    def call(self, name: str) -> ToolCall:
        """Return the call with a member in its argument."""
        return ToolCall(id="", name=self.tool, arguments={**self.given, self.argument: self.prefix + name})


class Use(NamedTuple):
    """A form in which the agent takes members of one kind of lists.

    `taken` has their hashes, `last` the step. Others are offered that have no more than `most` words; 0 is any number.
    """

    kind: int
    form: Form
    last: int
    most: int
    taken: tuple[int, ...]

    @property
    def row(self) -> list[JSON]:
        """The stored form."""
        form = self.form
        return [self.kind, self.last, self.most, form.tool, form.argument, form.prefix, dict(form.given), *self.taken]

    @classmethod
    def of(cls, row: Sequence[JSON]) -> Use:
        """Return the use of a stored row."""
        kind, last, most, *form = row[:7]
        return cls(kind, Form(*form), last, most, tuple(row[7:]))  # type: ignore[arg-type]  # our own rows, as every memory

    def allows(self, name: str) -> bool:
        """Return True if the name is like those that were taken."""
        return not self.most or alike(name, self.most)

    def suits(self, members: Iterable[str]) -> bool:
        """Return True if the agent has used two members in this form: of this list, or of one of its kind.

        Members with a folder, or after one, belong together only in one list. An error may have said so instead.
        """
        if _SURE in self.taken:
            return True
        members = [*members]
        if self.form.prefix or any("/" in member for member in members):
            return len({*self.taken} & {*map(_mark, members)}) >= TWO
        return len(self.taken) >= TWO


def _mark(member: str) -> int:
    return hash_of(member) & _BITS


def with_use(
    uses: Sequence[Use], kind: int, form: Form, member: str, index: int, *, strict: bool, is_sure: bool = False
) -> list[Use]:
    """Return the uses after a call in this form, which took a member of a list of this kind.

    With `strict`, only names like those that the agent took are offered: the tool does more than look. Where an error
    says that the form takes such members, it `is_sure`, and needs no second use.
    """
    left = [use for use in uses if (use.kind, use.form) != (kind, form)]
    before = next((use for use in uses if use not in left), Use(kind, form, index, 0, ()))
    marks = [mark for mark in before.taken if mark != _mark(member)]
    most = max(before.most, count_of_words(member), 1) if strict else 0
    sure = [_SURE] if is_sure and _SURE not in marks else []
    return [*left, Use(kind, form, index, most, (*sure, *marks, _mark(member))[-MAX_TAKEN:])][-MAX_FORMS:]


def refused(call: ToolCall, text: str, members: Sequence[str]) -> tuple[Form, str] | None:
    """Return the form of a call whose error quotes the value of one argument, and that value.

    The error says for which argument the members of its list are; not if they are the names of arguments.
    """
    given = call.arguments
    if not isinstance(given, (dict, Mapping)) or not given.keys().isdisjoint(members):
        return None
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    quoted = [(name, value) for name, value in texts.items() if _is_quoted(value, text)]
    if len(quoted) != 1 or not may_fill(call.name, given):
        return None
    name, value = quoted[0]
    rest: dict[str, JSON] = {**given, name: ""} if len(given) > 1 else {}
    return (Form(call.name, name, "", rest), value) if _may_be_kept(call.name, {**rest, name: ""}) else None


def _is_quoted(value: str, text: str) -> bool:
    return len(value) > 1 and any(f"{mark}{value}{mark}" in text for mark in "'\"`")


def form_of_call(call: ToolCall, members: Sequence[str]) -> tuple[Form, str] | None:
    """Return the form of a call and the member of a list that it takes; None if it takes none or two, or is no form."""
    given = call.arguments
    if not isinstance(given, (dict, Mapping)):
        return None
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    found = [taken for name, value in texts.items() if (taken := _ending(name, value, members))]
    if len(found) != 1 or not may_fill(call.name, given):
        return None
    name, prefix, member = found[0]
    rest: dict[str, JSON] = {**given, name: ""} if len(given) > 1 else {}
    return (Form(call.name, name, prefix, rest), member) if _may_be_kept(call.name, {**rest, name: prefix}) else None


def _ending(name: str, value: str, members: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the argument, the folder in it and the longest member with which it ends."""
    member = max((one for one in members if value.endswith(one)), key=len, default="")
    prefix = value.removesuffix(member)
    return (name, prefix, member) if member and _FOLDER.fullmatch(prefix) else None


def _may_be_kept(tool: str, given: Mapping[str, JSON]) -> bool:
    """Return True if a text can show the call as it is, and it is short and no secret."""
    size = len(tool)
    for name, value in given.items():
        if not _ARGUMENT.fullmatch(name) or _SECRET.search(name):
            return False
        if isinstance(value, str):
            if not value.isprintable() or value != value.lstrip():
                return False
            size += len(name) + len(value)
        elif isinstance(value, int) and abs(value) <= MAX_INT:
            size += len(name) + len(str(value))
        else:
            return False
    return size <= MAX_FORM
