"""Remembers what hints name: the columns and tables that were listed, and paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...account.calls import READ, kind_of
from ...account.observe import MAX_CALLS, results_of
from ...account.results import read_result
from ...types import JSON, Step, ToolCall
from ...util.text import ends
from ..roles import trust_of

HEAD = 3_000
"""Characters of a result in which names are looked for."""
LISTINGS, LISTING = 6, 300
"""Listings of columns or tables that are remembered, and the characters of each one's names."""
PATHS, PATH = 40, 100
_SCHEMA = re.compile(
    r"\s*(?:SHOW\s+(?:FULL\s+)?(?:TABLES|COLUMNS|FIELDS)\b|DESC(?:RIBE)?\s+[`\"\w.]+\s*;?\s*$|PRAGMA\s+table_(?:x?info|list)"
    r"|SELECT\s[^;]{0,300}?\bFROM\s+(?:information_schema\.(?:columns|tables)|sqlite_(?:master|schema))\b"
    r"|\\d\+?(?:\s+\w+)?\s*$|\.(?:tables|schema)\b)",
    re.IGNORECASE,
)
_OF_TABLE = re.compile(
    r"(?:DESC(?:RIBE)?|\b(?:COLUMNS|FIELDS)\s+(?:FROM|IN)|table_x?info\s*\(|\\d\+?|\.schema|table_name\s*=)\s*[`\"'(]?([\w.]+)",
    re.IGNORECASE,
)
_FIRST_NAME = re.compile(r"[\"'`|\s(]*(?:\d+[,|\s\"']+)?([A-Za-z_]\w{0,60})\b")
_HEADINGS = frozenset("field column_name table_name name type cid column def".split())
_PATH = re.compile(
    r"(?<![\w./@+~-])(?:~?/|\.{0,2}/)?(?:[\w@+-][\w.@+-]*/){0,12}[\w@+-][\w@+-]*\.[A-Za-z]\w{0,5}\b(?![\w/(])"
)
_FOLDER = re.compile(r"ls(?:\s+-\w+)*\s+((?:~?/|\./)?[\w.][\w./-]*)\s*$")


class Listing(NamedTuple):
    """The names of a table's columns, or of all tables if `table` is "", as step `step` listed them with `asked`."""

    step: int
    table: str
    asked: str
    names: str


class Seen(NamedTuple):
    """The listings and the paths that the run has shown."""

    listings: tuple[Listing, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def stored(self) -> JSON:
        """The form in a snapshot and on the wire."""
        return [[[*one] for one in self.listings], [*self.paths]]


def parse_seen(stored: JSON) -> Seen:
    """Return what was stored; nothing for what `gather` cannot have made."""
    if not (isinstance(stored, list) and len(stored) == 2):
        return Seen()
    listings, paths = stored
    if not (_are_listings(listings) and isinstance(paths, list) and all(isinstance(path, str) for path in paths)):
        return Seen()
    return Seen(tuple([Listing(*row) for row in listings][-LISTINGS:]), tuple(paths[-PATHS:]))


def _are_listings(given: JSON) -> bool:
    types = [int, str, str, str]
    return isinstance(given, list) and all(isinstance(row, list) and [*map(type, row)] == types for row in given)


def gather(step: Step, index: int, seen: Seen, roles: Mapping[str, str]) -> Seen:
    """Return what the run has shown with this step; of tools that return other people's text nothing."""
    calls = ends(step.tool_calls, MAX_CALLS)
    results = step.tool_results[:1] if len(calls) == 1 else results_of(calls, step.tool_results)
    for call, result in zip(calls, results, strict=False):  # a call may have no result
        if result is None or trust_of(call, roles) != "full":
            continue
        kind = kind_of(call, roles)
        lists_names = _SCHEMA.match(kind.command) is not None
        if not (lists_names or kind.looks):
            continue
        reading = read_result(result, kind=kind)
        if reading.failed:
            continue
        text = _head(reading.text)
        if lists_names:
            if found := _listing(kind.command, text, index, whole=text == reading.text):
                kept = [one for one in seen.listings if one.table.lower() != found.table.lower()]
                seen = seen._replace(listings=(*kept, found)[-LISTINGS:])
        else:
            new = dict.fromkeys([*_arguments(call), *_paths(kind.command, text if READ not in kind.roles else "")])
            kept_paths = [path for path in seen.paths if path not in new]
            seen = seen._replace(paths=(*kept_paths, *new)[-PATHS:])
    return seen


def _head(text: str) -> str:
    """Return the start of a result, without the name that the cut is in."""
    return text if len(text) <= HEAD else text[: max(text.rfind("\n", 0, HEAD), text.rfind(" ", 0, HEAD), 0)]


def _listing(command: str, text: str, index: int, *, whole: bool) -> Listing | None:
    found = _OF_TABLE.search(command)
    table = found[1].rpartition(".")[2] if found else ""
    rows = re.split(r"\n|\),\s*\(", text.strip().lstrip("["))
    names = [match[1] for row in rows if (match := _FIRST_NAME.match(row))]
    names = [
        name for name in dict.fromkeys(names) if name.lower() not in _HEADINGS and not name.startswith("Tables_in")
    ]
    kept = ""
    for name in [*names, *([] if whole else ["…"])]:
        if len(kept) + len(name) + 3 > LISTING:
            kept += ", …"
            break
        kept = f"{kept}, {name}" if kept else name
    return Listing(index, table, " ".join(command.split())[:60], kept) if len(names) > 1 else None


def _paths(command: str, text: str) -> Iterator[str]:
    folder = _FOLDER.match(command.strip())
    for found in _PATH.finditer(text):
        path = found[0]
        if len(path) <= PATH:
            yield path if "/" in path or folder is None else f"{folder[1].rstrip('/')}/{path}"


def _arguments(call: ToolCall) -> Iterator[str]:
    """Yield the paths that were given to a call which found them."""
    given = call.arguments
    for value in given.values() if isinstance(given, Mapping) else ():
        if isinstance(value, str) and len(value) <= PATH and "/" in value and _PATH.fullmatch(value):
            yield value
