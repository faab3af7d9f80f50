"""Draws a watched log as one line for each event, or as a board of the newest runs in a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, entry_of
from reasonblocks.types.outcomes import kind_of

from ._layout import clipped, fitted
from ._paint import Canvas, Line
from ._watched import Told, Watched, WatchedRun, finish_of, told
from .output import clean

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

STATES = {"FAST": "green", "NORMAL": "cyan", "SLOW": "yellow", "SKIP": "red", "END": "dim", "INIT": "dim"}
TEXT_ROWS = 3
"""The rows of a text, unless all of it is shown."""
NAME, ACTION = 28, 36
"""Columns of a run's name, and of a step's tools."""
BOARD_TEXTS = 5
COLUMNS = {
    "run": 12,
    "task": 0,
    "state": 6,
    "difficulty": 16,
    "step": 4,
    "texts": 5,
    "tokens": 8,
    "outcome": 8,
    "ago": 6,
}
"""The board's columns, each with its least width."""
FROM_WIDTH = {"tokens": 110, "difficulty": 90, "task": 76, "texts": 64, "ago": 56}
"""Columns of the terminal from which on one of the board is shown."""
NUMBERS = frozenset({"step", "texts", "tokens", "ago"})
ID_END = 8
"""Characters of a run's id beside the name of its agent, the last ones, unless it is short."""


def event_lines(event: Event, run: WatchedRun, canvas: Canvas, *, full: bool, only_told: bool) -> Iterator[Line]:
    """Yield the lines of one event. `only_told` omits steps without a text."""
    if isinstance(event, RunStart):
        task = fitted(run.task, max(canvas.width - NAME - 22, 20))
        observed = " (observed)" if run.mode == "observe" else ""
        yield (*_head(event, run), ("starts", "bold"), (f"{observed}{': ' if task else ''}{task}", ""))
    elif isinstance(event, RunFinish):
        style = "bold green" if kind_of(event.outcome) == "success" and not run.doubted else "bold red"
        yield (*_head(event, run), (fitted(finish_of(event, run), max(canvas.width - NAME - 12, 20)), style))
    else:
        texts = list(told(event))
        if texts or not only_told:
            yield _step_line(event, run, canvas)
            for text in texts:
                yield from _text_lines(text, canvas, full=full)


def _head(event: Event, run: WatchedRun) -> Line:
    return ((f"{clock(event.timestamp)}  ", "dim"), (fitted(name_of(run), NAME).ljust(NAME), "bold"), ("  ", ""))


def name_of(run: WatchedRun) -> str:
    """Return the agent's name and the end of the run's id, or the whole id without a name."""
    if not run.agent_name:
        return run.run_id
    short = run.run_id if len(run.run_id) <= 2 * ID_END else f"..{run.run_id[-ID_END:]}"
    return f"{run.agent_name} {short}"


def clock(timestamp: float) -> str:
    """Return the local time of day; dashes for a time that the platform cannot convert."""
    try:
        return time.strftime("%H:%M:%S", time.localtime(timestamp))
    except (OverflowError, OSError, ValueError):
        return "--:--:--"


def _step_line(event: StepEvent, run: WatchedRun, canvas: Canvas) -> Line:
    entry = entry_of(event)
    number = "end" if event.final else f"#{event.step_index}"
    auxiliary = entry.skipped_reason == "auxiliary"
    action = "(auxiliary call)" if auxiliary else fitted(event.action or event.thought, ACTION)
    return (
        *_head(event, run),
        (number.rjust(5), ""),
        (f"  {fitted(run.state, 6).ljust(6)}", STATES.get(run.state, "")),
        (f" {level(run.difficulties[-1], canvas)}  ", "cyan"),
        (action, ""),
        (f"  {fitted(entry.error, ACTION)}" if entry.error else "", "red"),
    )


def level(difficulty: float | None, canvas: Canvas) -> str:
    """Return the character of a difficulty in [0, 1]; a blank for none."""
    levels = canvas.glyphs.levels
    return " " if difficulty is None else levels[min(int(difficulty * len(levels)), len(levels) - 1)]


def _text_lines(text: Told, canvas: Canvas, *, full: bool) -> Iterator[Line]:
    edge = (" " * 10, ""), (f"{canvas.glyphs.said} ", "magenta")
    yield (*edge, (fitted(_origin(text), max(canvas.width - 12, 20)), "magenta"))
    width = max(canvas.width - 14, 20)
    rows = clipped(text.text, width, 10_000 if full else TEXT_ROWS, 0 if full else 1)
    for row in rows:
        yield (*edge, (f"  {row}", ""))


def _origin(text: Told) -> str:
    why = f" ({text.why})" if text.why else ""
    return f"{text.who}{why}{', withheld' if text.withheld else ''}"


def board(watched: Watched, canvas: Canvas, height: int, now: float, waiting: str = "") -> Group:
    """Return the newest runs, and below them the newest texts, for a terminal of `height` rows."""
    from rich.console import Group
    from rich.text import Text

    texts = list(watched.texts)[-min(BOARD_TEXTS, max(1, (height - 8) // 4)) :]
    room = max(3, height - 6 - 3 * len(texts))
    runs = list(reversed(watched.runs.values()))
    heading = Text(f"{watched.live} live, {len(runs) - watched.live} finished", style="bold")
    parts: list[RenderableType] = [heading, _runs_table(runs[:room], canvas, now)]
    if waiting:
        parts.append(Text(clean(waiting), style="dim"))
    if len(runs) > room:
        parts.append(Text(f"and {len(runs) - room} more", style="dim"))
    for text in reversed(texts):
        parts.extend(_told_texts(text, watched, canvas))
    return Group(*parts)


def _runs_table(runs: Iterable[WatchedRun], canvas: Canvas, now: float) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1))
    shown = {name: width for name, width in COLUMNS.items() if canvas.width >= FROM_WIDTH.get(name, 0)}
    for heading, width in shown.items():
        justify: Literal["left", "right"] = "right" if heading in NUMBERS else "left"
        table.add_column(heading, justify=justify, no_wrap=True, min_width=width or None, ratio=None if width else 1)
    for run in runs:
        bars = "".join(level(difficulty, canvas) for difficulty in list(run.difficulties)[-16:])
        outcome = "live" if run.outcome is None else f"{run.outcome}{' ?' if run.doubted else ''}"
        cells = {
            "run": Text(fitted(name_of(run), NAME), style="bold"),
            "task": Text(fitted(run.task, 60)),
            "state": Text(fitted(run.state, 6), style=STATES.get(run.state, "")),
            "difficulty": Text(bars, style="cyan"),
            "step": Text("" if run.step is None else str(run.step)),
            "texts": Text(str(run.texts or "")),
            "tokens": Text(f"{run.tokens:,}" if run.tokens else ""),
            "outcome": Text(fitted(outcome, 24), style="green" if outcome in ("live", "success") else "red"),
            "ago": Text(ago(now - run.seen)),
        }
        table.add_row(*(cells[name] for name in shown))
    return table


def ago(seconds: float) -> str:
    """Return a duration for people; "" for one before now."""
    if not 0 <= seconds < 1e8:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6_000 else f"{seconds / 3600:.0f} h"


def _told_texts(text: Told, watched: Watched, canvas: Canvas) -> Iterator[RenderableType]:
    from rich.text import Text

    run = watched.runs.get(text.run_id)
    name = name_of(run) if run else text.run_id
    head = f"{clock(text.timestamp)} {name} #{text.step} {_origin(text)}"
    yield Text(fitted(head, canvas.width), style="magenta")
    for row in clipped(text.text, max(canvas.width - 4, 20), 2, 0)[:2]:
        yield Text(f"  {row}")
