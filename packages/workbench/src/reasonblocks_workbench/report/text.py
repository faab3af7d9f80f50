"""Prepares foreign text for display: shows hidden characters by their code points, and clips long texts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise

from reasonblocks.types import ToolCall
from reasonblocks.util.json import canonical
from reasonblocks.util.text import collapse

CLIP = 4_000
"""Characters of a text in a file."""
TAIL = 1_000
"""Of these, the characters from the end of the text, where errors are."""
PREVIEW = 120
"""Characters of a text in a cell of a table."""
MISSING = "–"
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufeff\uffa0\ufff9-\ufffb\ufdd0-\ufdef"
    "\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
"""Characters of the categories Cc, Cf, Cs and Co, but for tab and newline; separators, fillers, variation selectors."""


_COLOURS = re.compile("\x1b\\[[0-9;:]*m")
"""Escape sequences that only set colours; the output of tools is full of them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of visible text, or the code point of a hidden character as `U+202E`."""

    text: str
    hidden: bool = False


def parts(text: str) -> Iterator[Part]:
    """Yield the stretches of a text, with each hidden character by itself."""
    text = text.replace("\r\n", "\n")
    found = list(_HIDDEN.finditer(text))
    if not found:
        yield Part(text)
        return
    at = 0
    for hidden in found:
        if hidden.start() > at:
            yield Part(text[at : hidden.start()])
        yield Part(code_point(hidden[0]), hidden=True)
        at = hidden.end()
    if at < len(text):
        yield Part(text[at:])


def plain(text: str) -> str:
    """Return the text in one line, with hidden characters as `U+202E`: for attributes, titles and names."""
    return visible(re.sub(r"[\t\n\r ]+", " ", text).strip())


def visible(text: str) -> str:
    """Return the text with hidden characters as `U+202E`."""
    if text.isascii() and text.isprintable():  # nearly all, in a tenth of the time
        return text
    return _HIDDEN.sub(lambda found: code_point(found[0]), text)


def finalized(value: object) -> object:
    """Return a value as a template shows it: a text visibly, markup of its own and other values unchanged."""
    return visible(value) if type(value) is str else value


def code_point(char: str) -> str:
    return f"U+{ord(char):04X}"


@dataclass(frozen=True, slots=True)
class Clipped:
    """A text as a page shows it: its start and, after `left_out` characters, its end."""

    start: str
    left_out: int = 0
    end: str = ""


def clip_text(text: str, limit: int | None) -> Clipped:
    """Return at most `limit` characters of a text; None for all of them."""
    if limit is None or len(text) <= limit:
        return Clipped(text)
    tail = min(TAIL, limit // 4)
    return Clipped(text[: limit - tail], len(text) - limit, text[-tail:] if tail else "")


def preview(text: str, limit: int = PREVIEW) -> str:
    """Return the start of a text in one line, with hidden characters as `U+202E`, without a terminal's colours."""
    line = collapse(visible(_COLOURS.sub("", text[: 4 * limit])))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def sentence(text: str) -> str:
    """Return the start of a text with a capital letter."""
    short = preview(text, 60)
    return short[:1].upper() + short[1:]


def arguments(call: ToolCall) -> str:
    """Return the arguments of a call: a value that is one text as it is, everything else as JSON."""
    given = call.arguments
    return given if isinstance(given, str) else canonical(given) if given not in ({}, [], None) else ""


def call_preview(call: ToolCall, limit: int = PREVIEW) -> str:
    """Return the arguments of a call in short, as `path=a.py text=...`."""
    if isinstance(call.arguments, dict):
        text = " ".join(f"{name}={_short(value)}" for name, value in list(call.arguments.items())[:8])
        return preview(text, limit)
    return preview(arguments(call), limit)


def _short(value: object) -> str:
    return value[:PREVIEW] if isinstance(value, str) else canonical(value)[:PREVIEW]


def number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def count(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}"


def dollars(value: float | None) -> str:
    """Return an amount as `$12.50`, or below one dollar as `$0.0125`."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def milliseconds(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def duration(seconds: float | None) -> str:
    """Return a duration as `0.8 s`, `42 s`, `3:07` or `2:03:07`."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(timestamp: float | None) -> str:
    """Return a time as `2026-01-31 12:00 UTC`; a time that no calendar has is missing."""
    if timestamp is None:
        return MISSING
    try:
        return datetime.fromtimestamp(timestamp, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return MISSING


def stretches(items: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the first and the last index of each stretch of equal items."""
    if not items:
        return []
    edges = [0, *(index for index in range(1, len(items)) if items[index] != items[index - 1]), len(items)]
    return [(start, end - 1) for start, end in pairwise(edges)]
