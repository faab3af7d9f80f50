"""Remembers the calls that take members of lists, so that a text can write what was not tried yet as calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..types import JSON, ToolCall, ToolResult

MAX_FORMS = 3
"""Kinds of lists whose call is remembered: those used last."""
MAX_FORM = 80
"""Characters of the longest remembered call."""


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
    if not isinstance(given, (dict, Mapping)) or not all(isinstance(value, (str, int)) for value in given.values()):
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
    rest: dict[str, JSON] = dict(given) if len(given) > 1 else {}
    fresh: list[list[JSON]] = [
        [kind, call.name, name, prefix, rest]
        for kind, (name, prefix) in made.items()
        if _size(call.name, {**rest, name: prefix}) <= MAX_FORM
    ]
    return [*[row for row in forms if row[0] not in made], *fresh][-MAX_FORMS:] if made else forms


def _refused(texts: Mapping[str, str], output: str) -> str | None:
    """Return the argument that a result is about: the only one, or the only one whose value it repeats."""
    if len(texts) > 1:
        texts = {name: value for name, value in texts.items() if len(value) > 1 and value in output}
    return next(iter(texts)) if len(texts) == 1 else None


def _takes(texts: Mapping[str, str], members: Sequence[str]) -> tuple[str, str] | None:
    """Return the only argument that ends with a member, and what stands before that."""
    ends = {name: next((one for one in members if value.endswith(one)), None) for name, value in texts.items()}
    found = [(name, texts[name].removesuffix(member)) for name, member in ends.items() if member is not None]
    return found[0] if len(found) == 1 and "(" not in found[0][1] else None  # an expression is about one table only


def _size(tool: str, given: Mapping[str, JSON]) -> int:
    return len(tool) + sum([len(name) + len(str(value)) for name, value in given.items()])
