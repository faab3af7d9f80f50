"""Shortens calls and results to the one line that a text may show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from ..types import JSON, ToolCall
from ..util.text import cut, size
from .features import plain
from .outcome import AnyCase

CALL, CALL_BYTES = 100, 124
"""Characters of a call in a text, and bytes in JSON."""
LINE, LINE_BYTES = 120, 132
"""Characters of a result's line in a text, and bytes in JSON."""
SENTENCE = 100
"""Characters of a sentence of the agent in a text."""
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
_ENDING = "…)"
"""The end of a call that was cut."""
_QUOTES = ('"', "`", '"""')
"""Delimiters of a literal text, by preference: the first one that is not in it."""
_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": None})
_RAISED_MARKS = ("Error", "Exception", "Interrupt", "Exit")
"""Marks, one of which is in every text that `_RAISED` matches."""
_RAISED = re.compile(r"^[ \t-]*[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::|$).*", re.MULTILINE)
_CODED = re.compile(r"^.*\b(?:E9\d\d|F\d{3}|E\d{4}|error\[\w+\])(?=[:\s]).*$", re.MULTILINE)
"""The line of a linter or a compiler with the code of an error."""
_CODE = re.compile(r"[EF]\d\d\d|error\[")
"""A part of every text that `_CODED` matches."""
_ERROR = re.compile(r"^(?:\S+: ?)?(?:fatal )?error: \S.*$", re.MULTILINE | re.IGNORECASE)
_POINTS = re.compile(r"['\"`\[][^'\"`\]\n]+['\"`\]]|\bline \d|:\d+\b")
"""A quoted name or the number of a line, which a message has and boilerplate has not."""
_TOTALS = re.compile(r"^.*\b(?:failed|failures|errors)\b.*$", re.MULTILINE)
_COMPLAINS = AnyCase(
    r"\b(?:\w*error|\w*exception|fatal|fail\w*|cannot|can't|could not|couldn't|unable|invalid|unknown|denied"
    r"|not (?:found|allowed|a|exist)|no such|missing|must|unexpected|did not|does not)\b",
    "error exception fatal fail can could unable invalid unknown denied not such missing must expected".split(),
)


def call_line(calls: Sequence[ToolCall]) -> str:
    """Return the calls of a step as the agent wrote them, in at most 100 characters."""
    shown = _call(calls[0], CALL) if len(calls) == 1 else _calls(calls)
    if size(shown) <= CALL_BYTES:
        return shown
    limit = CALL
    while size(shown) > CALL_BYTES and limit > SHORTEST:  # shortened anew, so that its quotes stay closed
        limit -= 8
        shown = _call(calls[0], limit)
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
        return literal(_shortened(value, limit - 2))
    if isinstance(value, (bool, int, float, type(None))):
        return _shortened(repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number", limit)
    return "[…]" if isinstance(value, (list, tuple)) else "{…}"


def literal(text: str) -> str:
    """Return a text between quotes that are not in it, so that it stays as it is."""
    for mark in _QUOTES[:2]:
        if mark not in text:
            return f"{mark}{text}{mark}"
    return f"{_QUOTES[2]}{text.replace(_QUOTES[2], '…').rstrip(chr(34))}{_QUOTES[2]}"


def _shortened(text: str, limit: int) -> str:
    if len(text) > 2 * READ:
        text = f"{text[:READ]}…{text[-READ:]}"
    text = one_line(text)
    if len(text) <= limit:
        return text
    head = max(1, (limit - 1) * 2 // 3)
    return f"{text[:head].rstrip()}…{text[len(text) - (limit - 1 - head) :].lstrip()}"


def one_line(text: str) -> str:
    """Return a text as one line: line breaks and tabs as a program writes them, other control characters left out."""
    text = text.strip().translate(_ESCAPES)
    return text if text.isprintable() else "".join(filter(str.isprintable, text))


def result_line(output: str, *, failing: bool) -> str:
    """Return the most telling line of a result in at most 120 characters.

    That is the message of an error, or else a result that has one line only: one of many lines does not stand for all.
    """
    text = output if len(output) <= 2 * SAID else f"{output[:SAID]}\n{output[-SAID:]}"
    if failing:
        return shortened_line(_message(text) or _first(text))
    text = text.strip()
    if "\n" in text:
        told = (line for line in text.split("\n") if line.strip() and not _is_heading(line))
        lines = [*islice(told, 2)]  # a second one is enough to know
        text = lines[0] if len(lines) == 1 else ""
    return shortened_line(text) if any(map(str.isalnum, text[:LINE])) else ""


def _is_heading(line: str) -> bool:
    return len(line) <= LINE and _HEADING.fullmatch(line) is not None


def _first(text: str) -> str:
    """Return the first line with a letter."""
    while text:
        line, _, text = text.lstrip().partition("\n")
        if any(map(str.isalpha, line[:LINE])):
            return line
    return ""


def shortened_line(text: str, limit: int = LINE) -> str:
    """Return the start of a line in at most 120 characters, and fewer if they take many bytes."""
    line = one_line(text[: 4 * limit])
    if len(line) > limit:
        line = f"{line[: limit - 1].rstrip()}…"
    return line if size(line) <= LINE_BYTES else f"{cut(line, LINE_BYTES - 3)}…"


def _message(text: str) -> str:
    """Return the line of a failed result that contains the message.

    That is the last one raised, an error with a code, the totals of tests, a line that begins with "error:", or the
    first complaint, one about a name or a line of the input before a general one.
    """
    raised = any(map(text.__contains__, _RAISED_MARKS)) and _RAISED.findall(text)
    if found := raised or (_CODE.search(text) and _CODED.findall(text)):
        return str(found[-1]).strip(" \t-")
    totals = _TOTALS.findall(text) if "passed" in text or "FAIL" in text else []
    if totals := totals or (_ERROR.findall(text) if "error: " in text.lower() else []):
        return str(totals[-1])
    complaints = [line for line in text.split("\n") if _COMPLAINS.found(line)]
    return next(filter(_POINTS.search, complaints), complaints[0] if complaints else "")
