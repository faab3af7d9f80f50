"""Hints for queries: names that a database does not know, and reserved words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from ...account.calls import command_of
from ...types import ToolCall
from ..excerpts import call_line, literal
from .moment import Moment, listed

_COLUMN = re.compile(
    r"Unknown column '([\w$.]+)'|no such column: \"?([\w$.]+)|column \"?([\w$.]+)\"? does not exist", re.IGNORECASE
)
_TABLE = re.compile(
    r"Table '(?:[\w$]+\.)?([\w$]+)' doesn't exist|no such table: \"?([\w$.]+)|relation \"([\w$.]+)\" does not exist",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO)\s+([^()]*?)(?=\b(?:WHERE|ON|USING|JOIN|LEFT|RIGHT|INNER|OUTER|FULL|CROSS"
    r"|NATURAL|GROUP|ORDER|HAVING|LIMIT|UNION|SET|SELECT|VALUES)\b|[();]|\Z)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\s*[`\"]?(?:\w+[`\"]?\.[`\"]?)?([A-Za-z_]\w*)[`\"]?(?:\s+(?:AS\s+)?[`\"]?([A-Za-z_]\w*))?", re.IGNORECASE
)
_NEAR = re.compile(r"to use near '(.{1,200}?)' at line \d+", re.DOTALL)
_RESERVED = frozenset(
    "rank rows groups system window lead lag condition usage range option interval character release function empty"
    " cube over percent_rank dense_rank cume_dist ntile first_value last_value nth_value row_number recursive lateral"
    " key keys index read write column lines fulltext accessible".split()
)
"""Reserved words of MySQL 8 that people use as names of columns and tables, and that start no part of a query."""
_QUERY = re.compile(r"\s*\(?(?:SELECT|INSERT|UPDATE|DELETE|WITH|SHOW|DESC|EXPLAIN)\b", re.IGNORECASE)
COLUMNS = 220
"""Characters of the names that a hint lists."""


def unknown_name(moment: Moment) -> str:
    """Say which columns or tables were listed; if none were, the call that lists them."""
    text = moment.reading.text[:600]
    if not (moment.failed and moment.own):
        return ""
    if found := _TABLE.search(text):
        return _tables(moment, _first(found), mysql="doesn't exist" in text)
    if found := _COLUMN.search(text):
        return _columns(moment, _first(found), mysql="Unknown column" in text, lite="no such column" in text)
    return ""


def _first(found: re.Match[str]) -> str:
    return str(next(filter(None, found.groups())))


def tables_listed(moment: Moment) -> str:
    """Return the sentence about the call that lists the tables of MySQL."""
    return f"{_asking(moment.call, 'SHOW TABLES')} lists the tables that there are."


def _tables(moment: Moment, unknown: str, *, mysql: bool) -> str:
    shown = next((one for one in reversed(moment.seen.listings) if not one.table), None)
    if shown is None:
        return tables_listed(moment) if mysql else ""
    names = shown.names.split(", ")
    if unknown.lower() in map(str.lower, names):
        return ""
    return f"{literal(shown.asked)}, {moment.ago(shown.step)}, listed these tables: {_nearest_first(unknown, names)}."


def _columns(moment: Moment, unknown: str, *, mysql: bool, lite: bool) -> str:
    prefix, _, column = unknown.rpartition(".")
    query = command_of(moment.call)
    asked = _table_of(query, prefix, column, in_select="'field list'" in moment.reading.text[:600])
    shown = next((one for one in moment.seen.listings if asked and one.table.lower() == asked.lower()), None)
    if shown is not None:
        names = shown.names.split(", ")
        if column.lower() in map(str.lower, names):
            return ""
        listing = f"{literal(shown.asked)}, {moment.ago(shown.step)}, listed the columns of {asked}"
        return f"{listing}: {_nearest_first(column, names)}."
    query = f"DESCRIBE {asked}" if mysql else f"PRAGMA table_info({asked})" if lite else ""
    return f"{_asking(moment.call, query)} lists the columns of {asked}." if asked and query else ""


def _table_of(query: str, prefix: str, column: str, *, in_select: bool) -> str:
    """Return the table that an unknown column was looked for in; "" if that is not sure.

    Without a prefix it is that of the part of the query around the column: of what is selected, the one that follows.
    """
    every = _tables_in(query)
    if prefix:
        return every.get(prefix.lower(), "")
    if len({*every.values()}) < 2:
        return next(iter(every.values()), "")
    found = re.search(rf"\b{re.escape(column)}\b", query, re.IGNORECASE)
    if found is None:
        return ""
    around = query[found.end() :] if in_select else query[: found.start()]
    named = [*_FROM.finditer(around[:2_000])]
    if not named:
        return ""
    nearest = named[0 if in_select else -1]
    joined = False
    if len(named) > 1:
        first_two = around[named[0].start() : named[1].end()].upper()
        joined = "JOIN" in first_two if in_select else nearest[0].upper().startswith("JOIN")
    tables = {*_tables_in(nearest[0]).values()}
    return tables.pop() if len(tables) == 1 and not joined else ""


def _tables_in(query: str) -> Mapping[str, str]:
    """Return the tables of a query by their names and aliases in lower case."""
    found = {}
    for said in _FROM.findall(query[:2_000]):
        for one in said.split(","):
            if named := _NAMED.match(one):
                found.update({name.lower(): named[1] for name in named.groups() if name})
    return found


def _nearest_first(name: str, names: list[str]) -> str:
    near = get_close_matches(name, [one for one in names if one != "…"], n=3, cutoff=0.6)
    return listed([*near, *[one for one in names if one not in near]], COLUMNS)


def _asking(call: ToolCall, query: str) -> str:
    """Return the call that makes another query, in the form of the newest one if that is a query alone."""
    given, command = call.arguments, command_of(call)
    if isinstance(given, Mapping):
        given = next(({str(name): query} for name, value in given.items() if value == command), None)
    elif given == command:
        given = query
    if given is None or not _QUERY.match(command):
        return literal(query)
    return call_line([ToolCall(id="", name=call.name, arguments=given)])


def reserved_word(moment: Moment) -> str:
    """Name the reserved word at the place where a parser of MySQL stopped."""
    found = _NEAR.search(moment.reading.text[:900]) if moment.failed and moment.own else None
    query = command_of(moment.call)
    if found is None or query.count(found[1]) != 1:
        return ""
    before = re.findall(r"[`\w]+", query[: query.index(found[1])])[-1:]
    after = re.findall(r"\A[`\w]+", found[1])
    word = next((word for word in [*before, *after] if word.lower() in _RESERVED), "")
    if not word:
        return ""
    return f"The parser stopped at {literal(word)}, a reserved word of MySQL: as a name it is written in backquotes."
