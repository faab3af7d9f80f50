"""Hints for commands: placeholders, and sentences where a command belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...account.calls import command_of
from ..excerpts import literal, plain
from .moment import Moment
from .queries import tables_listed

_PLACEHOLDER = re.compile(
    r"<(?:your|table|column|file|path|name|id|user|database|project|repo|api|key|value|insert|some|the)[\w -]{0,30}>"
    r"|\byour_(?:table|column|database|db|file|path|api|key|user|project|repo)\w{0,20}|(?<![\w/])/?path/to/[\w./-]{1,40}"
    r"|\bYOUR_[A-Z_]{2,30}\b"
)
_SENTENCE = re.compile(r"(?:[A-Z][\w'’]*|I)[,]?(?: [\w'’\"`,;:()-]+){5,}[.?!:]")
_NO_COMMAND = re.compile(
    r"no (?:sql|code|command|action)\b|command not found|did not contain|syntax error|no such file", re.IGNORECASE
)


def placeholder(moment: Moment) -> str:
    """Name the placeholder that was left in a call that failed or found nothing."""
    if not (moment.failed or moment.reading.nothing):
        return ""
    given = moment.call.arguments
    values = given.values() if isinstance(given, Mapping) else (given,)
    for value in values:
        found = _PLACEHOLDER.search(value[:2_000]) if isinstance(value, str) else None
        if found and f"mkdir {found[0]}" not in str(value):
            said = f"The call contains {literal(found[0])}, which has the form of a placeholder."
            return f"{said} {tables_listed(moment)}" if "MySQL" in moment.reading.text[:300] and moment.own else said
    return ""


def prose(moment: Moment) -> str:
    """Say that a tool for commands was given a sentence, or its own name."""
    command = command_of(moment.call).strip()
    if not (moment.failed and moment.own and command) or not _NO_COMMAND.search(moment.reading.text[:400]):
        return ""
    tool = plain(moment.call.name)
    if command.startswith(f"{moment.call.name}["):
        return f"The argument begins with {literal(moment.call.name + '[')}: {tool} takes the command alone."
    found = _SENTENCE.match(command)
    if found is None:
        return ""
    begins = literal(" ".join(command.split()[:5]))
    return f"{tool} was given a sentence, beginning with {begins}: it takes a command alone."
