"""Shortens calls and results to the one line that a text may show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .._text import cut, size
from ..types import JSON, ToolCall
from .features import plain

CALL, CALL_BYTES = 100, 124
"""Characters of a call in a text, and bytes in JSON."""
LINE, LINE_BYTES = 120, 132
"""Characters of a result's line in a text, and bytes in JSON."""
SHORTEST = 12
"""Characters of an argument below which no further argument is begun."""
READ = 400
"""Characters at each end of an argument that are read."""
SAID = 2_000
"""Characters at each end of a result in which its line is looked for."""

_HEADING = re.compile(
    r"\W*(?:(?:code|tool|command|execution|standard) )?(?:outputs?|results?|observations?|stdout|exit ?code)\W*"
    r"(?:0\b.*)?",
    re.IGNORECASE,
)
"""A line above a result, or the report that the call itself succeeded."""
_ENDING = '…")'
"""The end of a call that was cut: its quotes stay closed."""
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::|$).*", re.MULTILINE)
_TOTALS = re.compile(r"^.*\b(?:failed|failures|errors)\b.*$", re.MULTILINE)
_COMPLAINS = re.compile(
    r"\b(?:\w*error|\w*exception|fatal|fail\w*|cannot|can't|could not|couldn't|unable|invalid|unknown|denied"
    r"|not (?:found|allowed|a|exist)|no such|missing|must|unexpected|did not|does not)\b",
    re.IGNORECASE,
)


def call_line(calls: Sequence[ToolCall]) -> str:
    """Return the calls of a step as the agent wrote them, in at most 100 characters."""
    shown = _call(calls[0], CALL) if len(calls) == 1 else _calls(calls)
    return shown if size(shown) <= CALL_BYTES else f"{cut(shown, CALL_BYTES - len(_ENDING) - 3)}{_ENDING}"


def _calls(calls: Sequence[ToolCall]) -> str:
    more = f" and {len(calls) - 2} more" if len(calls) > 2 else ""
    return f"{_call(calls[0], 42)} + {_call(calls[1], 42)}{more}"


def _call(call: ToolCall, limit: int) -> str:
    name = plain(call.name)[: limit // 2] or "tool"
    return f"{name}({_arguments(call.arguments, limit - len(name) - 2)})"


def _arguments(given: JSON, limit: int) -> str:
    if not isinstance(given, (dict, Mapping)):  # `dict` first: the abstract class takes ten times as long to check
        return _value(given, limit) if given not in (None, "") else ""
    shown = ""
    for key, value in given.items():
        name = f"{', ' if shown else ''}{plain(str(key))[:24]}="
        left = limit - len(shown) - len(name)
        if left < SHORTEST:
            return f"{shown}, …" if shown and len(shown) + 3 <= limit else shown
        shown += name + _value(value, left)
    return shown


def _value(value: JSON, limit: int) -> str:
    """Return an argument in quotes if it is a text; a longer one keeps its start and its end."""
    if isinstance(value, str):
        return f'"{_shortened(value, limit - 2)}"'
    if isinstance(value, (bool, int, float, type(None))):
        return _shortened(repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number", limit)
    return "[…]" if isinstance(value, (list, tuple)) else "{…}"


def _shortened(text: str, limit: int) -> str:
    if len(text) > 2 * READ:
        text = f"{text[:READ]} … {text[-READ:]}"
    text = one_line(text)
    if len(text) <= limit:
        return text
    head = max(1, (limit - 1) * 2 // 3)
    return f"{text[:head].rstrip()}…{text[len(text) - (limit - 1 - head) :].lstrip()}"


def one_line(text: str) -> str:
    """Return a text as one line without control characters, in which single quotes replace double ones."""
    text = " ".join(text.split())
    if not text.isprintable():
        text = "".join(filter(str.isprintable, text))
    return text.replace('"', "'")


def result_line(output: str, *, failing: bool) -> str:
    """Return the most telling line of a result in at most 120 characters; "" if it contains no word.

    That is the message of an error, or else the first line with a letter or a digit.
    """
    text = output if len(output) <= 2 * SAID else f"{output[:SAID]}\n{output[-SAID:]}"
    found = _message(text) if failing else ""
    line = one_line((found or _first(text))[: 4 * LINE])
    if len(line) > LINE:
        line = f"{line[: LINE - 1].rstrip()}…"
    return cut(line, LINE_BYTES)


def _first(text: str) -> str:
    """Return the first line with a letter or a digit, and more than a heading if there is more."""
    heading = ""
    while text:
        line, _, text = text.lstrip().partition("\n")
        if any(map(str.isalnum, line[:LINE])):
            if len(line) > LINE or not _HEADING.fullmatch(line):
                return line
            heading = heading or line
    return heading


def _message(text: str) -> str:
    """Return the line of a failed result that contains the message: the last one raised, the totals, or a complaint."""
    raised = _RAISED.findall(text)
    if raised:
        return str(raised[-1])
    totals = _TOTALS.findall(text) if "passed" in text or "FAIL" in text else []
    if totals:
        return str(totals[-1])
    return next((line for line in text.split("\n") if _COMPLAINS.search(line)), "")
