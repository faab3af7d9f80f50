"""Implements `reasonblocks explain`: why an agent was told something after a step of a recorded run, or why not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.monitors.excerpts import call_line

from .files import add_format, recorded
from .options import add_settings, read_settings
from .output import OK, PROBLEM, Parsers, printable, say, warn

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..traces import RecordedRun


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "explain",
        help="say why an agent is told something after a step of a recorded run, or why not",
        description="Replays a recorded run and explains one step: its calls and what they are taken for, the step "
        "since which nothing has changed, the newest steps (a letter for a dead one), the patience, and why something "
        "was told or nothing. RUN is a file that `replay` reads; its first run is meant, or that of --run.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks explain [OPTIONS] RUN STEP"
    parser.add_argument("file", metavar="RUN")
    parser.add_argument("step", type=int, metavar="STEP", help="the number of the completed step, from 0 on")
    parser.add_argument("--run", metavar="ID", help="the run of this id")
    add_format(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(parser)
    parser.set_defaults(command=explain)


def explain(arguments: argparse.Namespace) -> int:
    """Explain the step; return 1 if the run cannot be found. Raises `ConfigError` for a step that the run lacks."""
    from ._account import account_json
    from ._replayer import replayer

    run = next(_runs(arguments.file, arguments.format, arguments.run), None)
    if run is None:
        named = f"no run is called {arguments.run!r}" if arguments.run else "no run could be read"
        warn(f"reasonblocks explain: {arguments.file}: {named}")
        return PROBLEM
    with replayer(read_settings(arguments), profiled=arguments.task_profile is not None) as replays:
        if replays.gathers:
            for other in _runs(arguments.file, arguments.format, None):
                replays(other)
            replays.gathered()
        replayed = replays(run)
    last = len(replayed.decisions) - 1
    if not 0 <= arguments.step <= last:
        steps = f"{run.run_id!r} has the steps 0 to {last}" if last >= 0 else f"{run.run_id!r} has no steps"
        if replayed.stopped_at is not None:
            steps += ", after which it is stopped"
        raise ConfigError("STEP", arguments.step, steps)
    if arguments.json:
        say(json.dumps({"run_id": run.run_id, "step": arguments.step, **account_json(replayed, arguments.step)}))
    else:
        for name, text in _rows(replayed, arguments.step):
            say(printable(f"{name:<9} {text}".rstrip()))
    return OK


def _runs(path: str, format: str | None, run_id: str | None) -> Iterator[RecordedRun]:
    for run in recorded(path, lambda at: None, format):
        if isinstance(run, RecordError):
            warn(str(run))
        elif run_id in (None, run.run_id):
            yield run


def _rows(replayed: ReplayedRun, index: int) -> Iterator[tuple[str, str]]:
    from reasonblocks.monitors.patience import rung_in_use

    from ._account import results, roles_of, why

    step, (account, patience, _) = replayed.run.steps[index], replayed.stands[index]
    yield "step", f"{index} of {replayed.run.run_id}"
    for call in step.tool_calls:
        roles = ", ".join(roles_of(replayed, call)) or "an act"
        yield "call", f"{call_line([call])}  ({roles})"
    for status, line in results(replayed, index):
        yield "result", f"{status}: {line}" if line else status
    yield "since", f"step {account.mark}: nothing has changed after it, as far as is known"
    yield "newest", f"{account.letters} (the newest last; a letter is a dead step, a small one only looked)"
    rung = rung_in_use(patience)
    moved = f", moved by {patience.offset:+d}" if patience.offset else ""
    yield "patience", f"{rung.name if rung else 'silent'} ({patience.name}{moved})"
    yield "said", why(replayed, index)
