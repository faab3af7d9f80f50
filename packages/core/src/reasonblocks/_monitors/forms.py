"""Remembers the calls that take members of lists, so that a text can write what was not tried yet as calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from .._json import MAX_INT
from ..types import JSON, ToolCall, ToolResult
from .listed import LONGEST_NAME, SHORT

MAX_FORMS = 3
"""Kinds of lists whose call is remembered: those used last."""
MAX_FORM = 80
"""Characters of the longest remembered call."""

_ARGUMENT = re.compile(r"[A-Za-z_][\w-]{0,23}", re.ASCII)
_SECRET = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
"""Names of arguments whose values are not kept."""
_NAMELIKE = re.compile(r"[\w.,@/#:'+-]+(?: [\w.,@/#:'+-]+){0,9}")
"""An argument that a name may replace: words, and not a query in a language of its own."""


class Form(NamedTuple):
    """A call: the argument that takes a member of a list, what stands before it there, such as a folder, and the rest.

    `given` has all arguments of a call with several, in their order; that of `argument` does not count.
    """

    tool: str
    argument: str
    prefix: str = ""
    given: Mapping[str, JSON] = MappingProxyType({})

    def call(self, name: str) -> ToolCall:
        """Return the call with a member in its argument."""
        return ToolCall(id="", name=self.tool, arguments={**self.given, self.argument: self.prefix + name})


def form_of(forms: Iterable[Sequence[JSON]], kind: JSON, alike: Iterable[JSON]) -> Form | None:
    """Return the form of a kind of list, or else of one of those `alike`, which have the same members; or None."""
    known = {row[0]: Form(*row[1:]) for row in forms}  # type: ignore[arg-type]  # our own rows, as every memory
    return next((known[one] for one in (kind, *alike) if one in known), None)


def with_forms(
    forms: list[list[JSON]],
    call: ToolCall,
    results: Sequence[ToolResult],
    refused: Iterable[JSON],
    taken: Mapping[JSON, Sequence[str]],
    offered: Collection[JSON],
) -> list[list[JSON]]:
    """Return the forms with this call: for the kinds of list in its error or search in vain, and those it took from.

    `taken` has the members of the lists that it took from. What else a call with several arguments says is no part of
    the form, such as the lines of a file, unless an error `offered` the list: then only that argument was wrong.
    """
    given = call.arguments
    if not isinstance(given, (dict, Mapping)):
        return forms
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    made: dict[JSON, tuple[str, str]] = {}
    argument = _refused(texts, results[0].output if results else "")
    if argument is not None:
        made = dict.fromkeys(refused, (argument, ""))
    for kind, members in taken.items():
        found = _takes(texts, members) if len(given) == 1 or kind in offered else None
        if found is not None:
            made[kind] = found
    fresh: list[list[JSON]] = []
    for kind, (name, prefix) in made.items():
        rest: dict[str, JSON] = {**given, name: ""} if len(given) > 1 else {}
        if _may_be_kept(call.name, {**rest, name: prefix}):
            fresh.append([kind, call.name, name, prefix, rest])
    return [*[row for row in forms if row[0] not in made], *fresh][-MAX_FORMS:] if made else forms


def _refused(texts: Mapping[str, str], output: str) -> str | None:
    """Return the argument that a result is about: the only one that it quotes, or the only one, if that is a name."""
    quoted = {name for name, value in texts.items() if value and _quotes(output, value)}
    if len(texts) == 1 and not quoted:
        quoted = {name for name, value in texts.items() if _NAMELIKE.fullmatch(value)}
    return quoted.pop() if len(quoted) == 1 else None


def _quotes(output: str, value: str) -> bool:
    """Return True if the value stands in the text between quotes or brackets, in any case."""
    if len(value) > LONGEST_NAME:
        return False
    return re.search(rf"""['"`\[(]{re.escape(value)}['"`\])]""", output[:SHORT], re.IGNORECASE) is not None


def _takes(texts: Mapping[str, str], members: Sequence[str]) -> tuple[str, str] | None:
    """Return the only argument that ends with a member, the longest one, and what stands before that."""
    found = []
    for name, value in texts.items():
        member = max((one for one in members if value.endswith(one)), key=len, default="")
        prefix = value.removesuffix(member)
        # The end of a word is no member, and an expression is about one table only.
        if member and not prefix[-1:].isalnum() and "(" not in prefix:
            found.append((name, prefix))
    return found[0] if len(found) == 1 else None


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
