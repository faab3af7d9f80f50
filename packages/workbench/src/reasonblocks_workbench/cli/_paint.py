"""Prints lines of styled parts: plain text anywhere, in colour if stdout is a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from typing import TypeAlias

from .output import safe, say

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
