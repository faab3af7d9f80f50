"""Draws lines of styled parts, and fits foreign text into them: measures, wraps and clips it, and makes it harmless.

The work is bounded by the rows that are wanted, not by the length of the text. The lines are plain text anywhere, and
in colour if stdout is a terminal.
"""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import islice
from typing import TypeAlias

from .output import clean, safe, say

Part: TypeAlias = "tuple[str, str]"
"""A text and its style in the words of rich, or "" for none."""
Line: TypeAlias = "tuple[Part, ...]"
NARROWEST, WIDEST, IN_A_PIPE = 56, 120, 100
"""Limits of the width in columns, and the width of an output that is no terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyphs:
    """The characters that are drawn."""

    full: str
    empty: str
    said: str
    edge: str
    call: str
    dot: str
    levels: str
    mark: str
    stop: str
    between: str


DRAWN = Glyphs(
    full="█", empty="░", said="┃", edge="│", call="›", dot="·", levels="▁▂▃▄▅▆▇█", mark="▲", stop="■", between=" · "
)
ASCII = Glyphs(
    full="#", empty=".", said="|", edge=":", call=">", dot="-", levels="_.-~=+*#", mark="^", stop="x", between=", "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The room that a view has."""

    width: int = IN_A_PIPE
    glyphs: Glyphs = DRAWN


def canvas() -> Canvas:
    """Return that of stdout. COLUMNS overrides the width; without Unicode in its encoding only ASCII is drawn."""
    columns = shutil.get_terminal_size((IN_A_PIPE, 0)).columns
    return Canvas(width=min(max(columns, NARROWEST), WIDEST), glyphs=DRAWN if _draws(DRAWN) else ASCII)


def _draws(glyphs: Glyphs) -> bool:
    try:
        "".join(astuple(glyphs)).encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def plain(line: Line) -> str:
    return "".join(text for text, _ in line).rstrip()


def paint(lines: Iterable[Line]) -> None:
    """Print the lines on stdout."""
    style = _styler()
    for line in lines:
        if style is None:
            say(plain(line))
        else:
            print("".join(style(safe(text), how) if how else safe(text) for text, how in line))


def _styler() -> Callable[[str, str], str] | None:
    """Return rich's function that colours a text, or None for an output without colours."""
    if not sys.stdout.isatty():
        return None
    from rich.color import ColorSystem
    from rich.console import Console
    from rich.style import Style

    console = Console()
    if console.color_system is None or console.no_color or console.legacy_windows:
        return None
    return lambda text, how: Style.parse(how).render(text, color_system=ColorSystem.STANDARD)


TAB = 4
EDGE = 400
"""Characters read from each end of a long text for each row that is wanted."""
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
"""Escape sequences that only set colours; coloured output of tools is full of them."""


def cells(text: str) -> int:
    """Return the columns that a printable text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit_width(text: str, width: int) -> str:
    """Return the text as one line of at most `width` columns, five at least; a cut one ends in an ellipsis."""
    line = " ".join(clean(_COLOURS.sub("", text[: 8 * width])).split())
    if cells(line) <= width and len(text) <= 8 * width:
        return line
    return line[: _end(line, 0, max(width - 3, 1))].rstrip() + "..."


def rows(text: str, width: int) -> Iterator[str]:
    """Yield the rows of all lines of a text, wrapped at blanks where there are any."""
    for line in text.splitlines():
        yield from _wrapped(clean(_COLOURS.sub("", line).expandtabs(TAB)).rstrip(), width)


def clip_rows(text: str, width: int, head: int, tail: int) -> list[str]:
    """Return the first and last rows of a text without blank ones, and between them the number of characters left out.

    A text that needs at most one row more is returned whole.
    """
    edge = EDGE * (head + tail + 1)
    if len(text) <= 2 * edge:
        found = list(filter(None, rows(text, width)))
        if len(found) <= head + tail + 1:
            return found
        first, last = found[:head], found[len(found) - tail :]
    else:
        first = list(islice(filter(None, rows(text[:edge], width)), head))
        last = list(filter(None, rows(text[-edge:], width)))
        last = last[len(last) - tail :] if tail else []
    hidden = max(1, len(text) - sum(map(len, first)) - sum(map(len, last)))
    return [*first, f"... {hidden:,} characters ...", *last]


def _wrapped(line: str, width: int) -> Iterator[str]:
    start = 0
    while (end := _end(line, start, width)) < len(line):
        blank = line.rfind(" ", start + width // 2, end + 1)
        yield line[start : end if blank < 0 else blank].rstrip()
        start = end if blank < 0 else blank + 1
    yield line[start:]


def _end(line: str, start: int, width: int) -> int:
    """Return where the longest part from `start` that fits into `width` columns ends; it has one character at least."""
    if line.isascii():
        return min(start + width, len(line))
    used = 0
    for end in range(start, len(line)):
        used += _cells(line[end])
        if used > width and end > start:
            return end
    return len(line)


def level(difficulty: float | None, canvas: Canvas) -> str:
    """Return the character of a difficulty in [0, 1]; a blank for none."""
    levels = canvas.glyphs.levels
    return " " if difficulty is None else levels[min(int(difficulty * len(levels)), len(levels) - 1)]


def bar(share: float, length: int, full: str, empty: str) -> str:
    """Return a bar of that length, filled up to the share."""
    filled = round(min(max(share, 0.0), 1.0) * length)
    return full * filled + empty * (length - filled)
