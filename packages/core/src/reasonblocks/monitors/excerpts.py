"""Shortens calls and lines to what a text may show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from ..types import JSON, ToolCall
from ..util.text import cut_to_bytes, size

CALL, CALL_BYTES = 100, 124
"""Characters of a call in a text, and bytes in JSON."""
LINE, LINE_BYTES = 200, 220
"""Characters of a result's line in a text, and bytes in JSON."""
SHORTEST = 12
"""Characters of an argument below which no further argument is begun."""
READ = 400
"""Characters at each end of an argument that are read."""
ARGUMENTS = 16
"""Arguments that are read."""
BRIEF = 40
"""Characters of an argument that goes first where not all have room: it names what the call is about."""
FEW = 4
"""Items of a list that are shown."""
MORE, ELLIPSIS = "[…]", ", …"
NAME_LENGTH = 48
"""Characters of a name that a text shows."""
_UNSAFE = re.compile(r"[^\w-]+")
_ENDING = "…)"
"""The end of a call that was cut."""
_QUOTES = ('"', "`", '"""')
"""Delimiters of a literal text, by preference: the first one that is not in it."""
_ESCAPES = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": None})


def plain(name: str) -> str:
    """Return a name that a text may show: letters, digits, "-" and "_"."""
    name = name[:NAME_LENGTH]
    return name if name.isidentifier() else _UNSAFE.sub("_", name)


def quoted(line: str) -> str:
    """Return a line of a result, shortened and in quotes."""
    return literal(shortened_line(line))


def call_line(calls: Sequence[ToolCall]) -> str:
    """Return the calls of a step as the agent wrote them, in at most 100 characters."""
    shown = _call(calls[0], CALL) if len(calls) == 1 else _calls(calls)
    if size(shown) <= CALL_BYTES:
        return shown
    limit = CALL
    while size(shown) > CALL_BYTES and limit > SHORTEST:  # shortened anew, so that its quotes stay closed
        limit -= 8
        shown = _call(calls[0], limit)
    return shown if size(shown) <= CALL_BYTES else f"{cut_to_bytes(shown, CALL_BYTES - len(_ENDING) - 3)}{_ENDING}"


def _calls(calls: Sequence[ToolCall]) -> str:
    more = f" and {len(calls) - 2} more" if len(calls) > 2 else ""
    return f"{_call(calls[0], 42)} + {_call(calls[1], 42)}{more}"


def _call(call: ToolCall, limit: int) -> str:
    name = plain(call.name)[: limit // 2] or "tool"
    return f"{name}({_arguments(call.arguments, limit - len(name) - 2)})"


def _arguments(given: JSON, limit: int) -> str:
    if not isinstance(given, Mapping):
        return _value(given, limit) if given not in (None, "") else ""
    pairs = list(islice(given.items(), ARGUMENTS))
    shown, has_all = _pairs(pairs, limit)
    if has_all:
        return shown
    return _pairs(sorted(pairs, key=lambda pair: not _is_brief(pair[1])), limit)[0]


def _pairs(given: Sequence[tuple[str, JSON]], limit: int) -> tuple[str, bool]:
    """Return as many arguments as there is room for, and whether that is all of them."""
    shown = ""
    for at, (key, value) in enumerate(given, 1):
        name = f"{', ' if shown else ''}{plain(str(key))[:24]}="
        left = limit - len(shown) - len(name) - (len(ELLIPSIS) if at < len(given) else 0)
        if left < SHORTEST:
            return f"{shown}{ELLIPSIS}" if shown else "", False
        shown += name + _value(value, left)
    return shown, True


def _is_brief(value: JSON) -> bool:
    if isinstance(value, (list, tuple)):
        return _items(value, BRIEF) != MORE
    return len(value) <= BRIEF if isinstance(value, str) else not isinstance(value, Mapping)


def _value(value: JSON, limit: int) -> str:
    """Return an argument, in quotes if it is a text, as it was written; a longer one keeps its start and its end."""
    if isinstance(value, str):
        whole = escaped(value) if len(value) <= limit else ""
        return literal(whole if whole and len(whole) <= limit - 2 else _shortened(value, limit - 2))
    if isinstance(value, (bool, int, float, type(None))):
        return _shortened(repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number", limit)
    if isinstance(value, (list, tuple)):
        return _items(value, limit)
    return "{…}"


def _items(values: Sequence[JSON], limit: int) -> str:
    """Return a list of a few short texts and numbers as it is."""
    if 0 < len(values) <= FEW and all(isinstance(value, (str, int, float)) for value in values):
        shown = f"[{', '.join(_value(value, limit) for value in values)}]"
        if len(shown) <= limit and "…" not in shown:
            return shown
    return MORE


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
    """Return a text as one line, without the white space around it."""
    return escaped(text.strip())


def escaped(text: str) -> str:
    """Return a text with line breaks and tabs as a program writes them, and other control characters left out."""
    text = text.translate(_ESCAPES)
    return text if text.isprintable() else "".join(filter(str.isprintable, text))


def shortened_line(text: str, limit: int = LINE) -> str:
    """Return a line in at most `limit` characters and few bytes more, cut in its middle.

    An error often names the place at its end.
    """
    room = limit + LINE_BYTES - LINE
    while size(shown := _shortened(text, limit)) > room and limit > SHORTEST:
        limit -= 8
    return shown
