"""Implements `reasonblocks watch`: shows the runs of a sink's file while they are written."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from reasonblocks.events import Event, RunFinish, RunStart

from ._paint import WIDEST, Canvas, canvas, paint
from ._watch_view import board, event_lines
from ._watched import Watched
from .output import OK, PROBLEM, Parsers, say_data, warn

if TYPE_CHECKING:
    from ..traces.follow import Following

LONGEST_INTERVAL = 60.0
SHORTEST = 4
"""The fewest characters of an id that select its run."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "watch",
        help="show runs live, while they are recorded",
        description="Shows the runs of a file that a SQLiteMonitorSink or a JsonlSink writes: the newest steps, then "
        "each new one, with the texts that the agent gets, except for standing rules. In a terminal, it is a "
        "board of the newest runs, elsewhere one line for each event. A step is recorded when the next one begins. "
        "Reads only; Ctrl-C ends it.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the sink's file, which need not exist yet")
    parser.add_argument("--run", metavar="ID", help="only this run; the start or the end of its id is enough")
    parser.add_argument("--agent", metavar="NAME", help="only runs of this agent")
    parser.add_argument("--told", action="store_true", help="only starts, texts and ends")
    parser.add_argument("--full", action="store_true", help="show all texts whole; implies --lines")
    parser.add_argument("--lines", action="store_true", help="print one line for each event, also in a terminal")
    parser.add_argument("--json", action="store_true", help="print each event as one JSON object")
    parser.add_argument("--once", action="store_true", help="show what the file contains and exit")
    parser.add_argument(
        "--interval", type=_seconds, default=0.5, metavar="S", help="seconds between two reads of the file (0.5)"
    )
    parser.set_defaults(command=watch)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0.05 <= float(text) <= LONGEST_INTERVAL:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.05 to {LONGEST_INTERVAL:g}")


def watch(arguments: argparse.Namespace) -> int:
    """Show the events until the user stops it. Raises `RecordError` for a file that no sink wrote."""
    from ..traces.follow import Following

    following, watched, room = Following(arguments.file), Watched(), canvas()
    show = _output(arguments, watched, room)
    with ExitStack() as stack:
        update = stack.enter_context(_Board(watched, room)).update if show is None else None
        with suppress(KeyboardInterrupt):
            for events in _polls(following, arguments):
                for event in _wanted(events, watched, arguments):
                    if show is not None:
                        show(event)
                if update is not None:
                    update("" if following.exists else f"waiting for {arguments.file}")
    if arguments.once and not watched.runs:
        warn(f"reasonblocks watch: {_nothing(following, arguments)}")
        return PROBLEM
    return OK


def _nothing(following: Following, arguments: argparse.Namespace) -> str:
    """Return the reason why nothing was shown."""
    if not following.exists:
        return f"{arguments.file}: no such file, or an empty one"
    wanted = [f"{name} {value!r}" for name in ("run", "agent") if (value := getattr(arguments, name)) is not None]
    return f"{arguments.file}: no steps" + (f" of {' and '.join(wanted)} among the newest" if wanted else "")


def _polls(following: Following, arguments: argparse.Namespace) -> Iterator[list[Event]]:
    """Yield the new events of each read of the file; only those of the first one with `--once`."""
    events = following.poll()
    if not following.exists and not arguments.once:
        warn(f"reasonblocks watch: waiting for {arguments.file}")
    yield events
    while not arguments.once:
        sys.stdout.flush()
        time.sleep(arguments.interval)
        yield following.poll()


def _wanted(events: list[Event], watched: Watched, arguments: argparse.Namespace) -> Iterator[Event]:
    """Apply the events of the wanted runs, and yield them."""
    for event in events:
        if arguments.run is not None and not is_named(event.run_id, arguments.run):
            continue
        known = watched.runs.get(event.run_id)
        agent = event.run.agent_name if isinstance(event, RunStart) else known.agent_name if known else ""
        if arguments.agent in (None, agent):
            watched.add(event)
            yield event


def is_named(run_id: str, name: str) -> bool:
    """Return True if `name` is the id, its start, or its end, with or without the dots before it."""
    end = name.lstrip(".")
    return run_id == name or (len(end) >= SHORTEST and (run_id.startswith(name) or run_id.endswith(end)))


def _output(arguments: argparse.Namespace, watched: Watched, room: Canvas) -> Callable[[Event], None] | None:
    """Return the function that prints an event; None for the board."""
    if arguments.json:
        return lambda event: say_data(json.dumps(event.as_dict()))
    if not (arguments.lines or arguments.full or arguments.once) and sys.stdout.isatty():
        return None

    def lines(event: Event) -> None:
        run = watched.runs[event.run_id]
        paint(event_lines(event, run, room, full=arguments.full, only_told=arguments.told))
        if isinstance(event, RunFinish):
            sys.stdout.flush()

    return lines


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
