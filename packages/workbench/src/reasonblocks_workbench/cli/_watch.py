"""Implements `reasonblocks watch`: shows the runs of a sink's file while they are written.

They are drawn as one line for each event, or as a board of the newest runs in a terminal.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, BadParameter, Option

from reasonblocks.events import Event, RunFinish, RunStart, StepEvent, entry_of
from reasonblocks.types.outcomes import kind_of

from ..report.page import MONITOR, Told
from ._lines import WIDEST, Canvas, Line, canvas, clip_rows, fit_width, level, paint
from .output import OK, PROBLEM, clean, say_data, warn

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from ..traces.follow import Following

LONGEST_INTERVAL = 60.0
SHORTEST = 4
"""The fewest characters of an id that select its run."""
RUNS_KEPT = 200
TEXTS_KEPT = 50
STATES = {"FAST": "green", "NORMAL": "cyan", "SLOW": "yellow", "SKIP": "red", "END": "dim", "INIT": "dim"}
TEXT_ROWS = 3
"""The rows of a text, unless all of it is shown."""
NAME, ACTION, PLACE = 28, 28, 15
"""Columns of a run's name, of a step's tools, and of its place in the run."""
BOARD_TEXTS = 5
COLUMNS = {
    "run": 12,
    "task": 0,
    "state": 6,
    "difficulty": 16,
    "call": 4,
    "texts": 5,
    "tokens": 8,
    "outcome": 8,
    "ago": 6,
}
"""The board's columns, each with its least width."""
FROM_WIDTH = {"tokens": 110, "difficulty": 90, "task": 76, "texts": 64, "ago": 56}
"""Columns of the terminal from which on one of the board is shown."""
NUMBERS = frozenset({"call", "texts", "tokens", "ago"})
ID_END = 8
"""Characters of a run's id beside the name of its agent, the last ones, unless it is short."""


def watch(
    file: Annotated[str, Argument(metavar="FILE", help="the sink's file, which need not exist yet")],
    run: Annotated[
        str | None, Option(metavar="ID", help="only this run; the start or the end of its id is enough")
    ] = None,
    agent: Annotated[str | None, Option(metavar="NAME", help="only runs of this agent")] = None,
    only_told: Annotated[bool, Option("--told", help="only starts, texts and ends")] = False,
    full: Annotated[bool, Option("--full", help="show all texts whole; implies --lines")] = False,
    lines: Annotated[bool, Option("--lines", help="print one line for each event, also in a terminal")] = False,
    as_json: Annotated[bool, Option("--json", help="print each event as one JSON object")] = False,
    once: Annotated[bool, Option("--once", help="show what the file contains and exit")] = False,
    interval: Annotated[
        float, Option(parser=lambda text: _seconds(text), metavar="S", help="seconds between two reads of the file")
    ] = 0.5,
) -> int:
    """Show the runs of a file that a SQLiteMonitorSink or a JsonlSink writes.

    It shows the newest steps, then each new one, with the texts that the agent gets, except for standing rules. In a
    terminal, it is a board of the newest runs, elsewhere one line for each event. A step is recorded when the next call
    begins, and shown as "before call N"; `explain FILE --run ID --call N` explains it. Reads only; Ctrl-C ends it.
    """
    from ..traces.follow import Following

    following, watched, room = Following(file), Watched(), canvas()
    as_board = not (as_json or lines or full or once) and sys.stdout.isatty()
    with ExitStack() as stack:
        drawn = stack.enter_context(_Board(watched, room)) if as_board else None
        with suppress(KeyboardInterrupt):
            for events in _polls(following, file, None if once else interval):
                for event in _wanted(events, watched, run, agent):
                    if as_json:
                        say_data(json.dumps(event.as_dict()))
                    elif drawn is None:
                        paint(event_lines(event, watched.runs[event.run_id], room, full=full, only_told=only_told))
                        if isinstance(event, RunFinish):
                            sys.stdout.flush()
                if drawn is not None:
                    drawn.update(_waiting(following, file) if following.unread else "")
    if once and not watched.runs:
        wanted = [f"{name} {value!r}" for name, value in (("run", run), ("agent", agent)) if value is not None]
        nothing = "no steps" + (f" of {' and '.join(wanted)} among the newest" if wanted else "")
        warn(f"reasonblocks watch: {file}: {following.unread or nothing}")
        return PROBLEM
    return OK


def _polls(following: Following, file: str, interval: float | None) -> Iterator[list[Event]]:
    """Yield the new events of each read of the file; only those of the first one without an interval.

    Until there are any, say once of a missing file and once of an existing one why not.
    """
    yet_to_say = {False, True}
    while True:
        events = following.poll()
        if events:
            yet_to_say.clear()
        elif interval is not None and following.unread and following.exists in yet_to_say:
            yet_to_say.remove(following.exists)
            warn(f"reasonblocks watch: {_waiting(following, file)}")
        yield events
        if interval is None:
            return
        sys.stdout.flush()
        time.sleep(interval)


def _waiting(following: Following, file: str) -> str:
    return f"{file}: {following.unread}; waiting for the events of a SQLiteMonitorSink or a JsonlSink"


def _wanted(events: list[Event], watched: Watched, run_id: str | None, agent: str | None) -> Iterator[Event]:
    """Apply the events of the wanted runs, and yield them."""
    for event in events:
        if run_id is not None and not is_named(event.run_id, run_id):
            continue
        known = watched.runs.get(event.run_id)
        name = event.run.agent_name if isinstance(event, RunStart) else known.agent_name if known else ""
        if agent in (None, name):
            watched.add(event)
            yield event


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0.05 <= float(text) <= LONGEST_INTERVAL:
            return float(text)
    raise BadParameter(f"{text!r} is not a number of seconds from 0.05 to {LONGEST_INTERVAL:g}")


def is_named(run_id: str, name: str) -> bool:
    """Return True if `name` is the id, its start, or its end, with or without the dots before it."""
    end = name.lstrip(".")
    return run_id == name or (len(end) >= SHORTEST and (run_id.startswith(name) or run_id.endswith(end)))


class _Board:
    """The board in the terminal, redrawn after each read of the file."""

    def __init__(self, watched: Watched, room: Canvas) -> None:
        from rich.console import Console
        from rich.live import Live

        self._watched, self._room = watched, room
        self._live = Live(console=Console(), screen=True, auto_refresh=False)

    def __enter__(self) -> _Board:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, waiting: str) -> None:
        size = shutil.get_terminal_size()
        room = replace(self._room, width=min(size.columns, WIDEST))
        self._live.update(board(self._watched, room, size.lines, time.time(), waiting), refresh=True)


# --- the newest runs


@dataclass(slots=True, kw_only=True)
class WatchedRun:
    """A run as of its newest event; times are seconds since the epoch."""

    run_id: str
    agent_name: str = ""
    task: str = ""
    model: str = ""
    mode: str = "steer"
    started: float | None = None
    seen: float = 0.0
    step: int | None = None
    state: str = ""
    difficulties: deque[float | None] = field(default_factory=lambda: deque(maxlen=24))
    tokens: int = 0
    texts: int = 0
    outcome: str | None = None
    doubted: bool = False


class Watched:
    """The newest runs, in the order of their newest event, and the newest texts."""

    def __init__(self) -> None:
        self.runs: dict[str, WatchedRun] = {}
        self.texts: deque[tuple[StepEvent, Told]] = deque(maxlen=TEXTS_KEPT)

    def add(self, event: Event) -> WatchedRun:
        """Apply an event and return its run."""
        run_id = event.run_id
        run = self.runs.pop(run_id, None) or WatchedRun(run_id=run_id)
        if isinstance(event, RunStart):
            run = _started(event)
        elif isinstance(event, StepEvent):
            self._step(run, event)
        else:
            run.outcome, run.doubted = event.outcome, run.doubted or bool(event.doubts)
        run.seen = max(run.seen, event.timestamp)
        self.runs[run_id] = run
        while len(self.runs) > RUNS_KEPT:
            del self.runs[next(iter(self.runs))]
        return run

    @property
    def live(self) -> int:
        """The number of runs without an outcome."""
        return sum(run.outcome is None for run in self.runs.values())

    def _step(self, run: WatchedRun, event: StepEvent) -> None:
        entry = entry_of(event)
        run.step, run.state = event.step_index, entry.fsm_state or run.state
        run.doubted = bool(entry.doubts)
        known = entry.difficulty is not None and 0 <= entry.difficulty <= 1
        run.difficulties.append(entry.difficulty if known else None)
        run.tokens += event.tokens or 0
        if not event.final:
            run.outcome = None  # it continues
        found = told(event)
        run.texts += len(found)
        self.texts.extend((event, text) for text in found)


def _started(event: RunStart) -> WatchedRun:
    run = event.run
    return WatchedRun(
        run_id=run.run_id,
        agent_name=run.agent_name,
        task=run.task,
        model=run.model,
        mode=run.mode,
        started=event.timestamp,
    )


def told(event: StepEvent) -> list[Told]:
    """Return the texts of a call except standing rules, then those that were withheld from an observed run."""
    entry = entry_of(event)
    shown = zip(entry.injection_sources, entry.intervention_texts)
    withheld = zip(entry.withheld_sources, entry.withheld_texts)
    found = [Told(source=source, text=text) for source, text in shown]
    found += [Told(source=source, text=text, withheld=True) for source, text in withheld]
    return [text for text in found if not text.standing]


def finish_of(event: RunFinish, run: WatchedRun) -> str:
    """Return the outcome for people, with a remark for a success in doubt."""
    return f"{event.outcome} (in doubt)" if kind_of(event.outcome) == "success" and run.doubted else event.outcome


# --- the lines, and the board


def event_lines(event: Event, run: WatchedRun, canvas: Canvas, *, full: bool, only_told: bool) -> Iterator[Line]:
    """Yield the lines of one event. `only_told` omits steps without a text."""
    if isinstance(event, RunStart):
        task = fit_width(run.task, max(canvas.width - NAME - 22, 20))
        observed = " (observed)" if run.mode == "observe" else ""
        yield (*_head(event, run), ("starts", "bold"), (f"{observed}{': ' if task else ''}{task}", ""))
    elif isinstance(event, RunFinish):
        style = "bold green" if kind_of(event.outcome) == "success" and not run.doubted else "bold red"
        yield (*_head(event, run), (fit_width(finish_of(event, run), max(canvas.width - NAME - 12, 20)), style))
    else:
        texts = told(event)
        if texts or not only_told:
            yield _step_line(event, run, canvas)
            for text in texts:
                yield from _text_lines(event, text, canvas, full=full)


def _head(event: Event, run: WatchedRun) -> Line:
    return ((f"{clock(event.timestamp)}  ", "dim"), (fit_width(name_of(run), NAME).ljust(NAME), "bold"), ("  ", ""))


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


def place_of(event: StepEvent) -> str:
    """Return where the texts of an event are said: before which call of the run, from 0 on."""
    return "at the end" if event.final else f"before call {event.step_index}"


def _step_line(event: StepEvent, run: WatchedRun, canvas: Canvas) -> Line:
    entry = entry_of(event)
    auxiliary = entry.skipped_reason == "auxiliary"
    action = "(auxiliary call)" if auxiliary else fit_width(event.action or event.thought, ACTION)
    return (
        *_head(event, run),
        (place_of(event).ljust(PLACE), ""),
        (f"  {fit_width(run.state, 6).ljust(6)}", STATES.get(run.state, "")),
        (f" {level(run.difficulties[-1], canvas)}  ", "cyan"),
        (action, ""),
        (f"  {fit_width(entry.error, ACTION)}" if entry.error else "", "red"),
    )


def _text_lines(event: StepEvent, text: Told, canvas: Canvas, *, full: bool) -> Iterator[Line]:
    edge = (" " * 10, ""), (f"{canvas.glyphs.said} ", "magenta")
    yield (*edge, (fit_width(_origin(event, text), max(canvas.width - 12, 20)), "magenta"))
    width = max(canvas.width - 14, 20)
    rows = clip_rows(text.text, width, 10_000 if full else TEXT_ROWS, 0 if full else 1)
    for row in rows:
        yield (*edge, (f"  {row}", ""))


def _origin(event: StepEvent, text: Told) -> str:
    fired = event.monitors_fired if text.source == MONITOR else ()
    why = f" ({', '.join(fired)})" if fired else ""
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
    for event, text in reversed(texts):
        parts.extend(_told_texts(event, text, watched, canvas))
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
            "run": Text(fit_width(name_of(run), NAME), style="bold"),
            "task": Text(fit_width(run.task, 60)),
            "state": Text(fit_width(run.state, 6), style=STATES.get(run.state, "")),
            "difficulty": Text(bars, style="cyan"),
            "call": Text("" if run.step is None else str(run.step)),
            "texts": Text(str(run.texts or "")),
            "tokens": Text(f"{run.tokens:,}" if run.tokens else ""),
            "outcome": Text(fit_width(outcome, 24), style="green" if outcome in ("live", "success") else "red"),
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


def _told_texts(event: StepEvent, text: Told, watched: Watched, canvas: Canvas) -> Iterator[RenderableType]:
    from rich.text import Text

    run = watched.runs.get(event.run_id)
    name = name_of(run) if run else event.run_id
    head = f"{clock(event.timestamp)} {name} {place_of(event)}: {_origin(event, text)}"
    yield Text(fit_width(head, canvas.width), style="magenta")
    for row in clip_rows(text.text, max(canvas.width - 4, 20), 2, 0)[:2]:
        yield Text(f"  {row}")
