"""Implements `reasonblocks explain`: why an agent was told something after a step of a recorded run, or why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.monitors.excerpts import call_line

from .files import read_recorded
from .options import Format, Settings, expand_options, whole
from .output import OK, PROBLEM, printable, say, warn

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..traces import RecordedRun


@expand_options
def explain(
    file: Annotated[str, Argument(metavar="RUN")],
    step: Annotated[int, Argument(metavar="STEP", parser=whole, help="the number of the completed step, from 0 on")],
    settings: Settings,
    run: Annotated[str | None, Option(metavar="ID", help="the run of this id")] = None,
    format: Format = None,
    as_json: Annotated[bool, Option("--json", help="print one JSON object")] = False,
) -> int:
    """Replay a recorded run and explain one step: why something was told after it, or nothing.

    It shows the step's calls and what they are taken for, the step since which nothing has changed, the newest steps (a
    letter for a dead one), and the patience. RUN is a file that `replay` reads; its first run is meant, or that of
    --run.
    """
    from ._decisions import account_json
    from ._replayer import replayer

    found = next(_runs(file, format, run), None)
    if found is None:
        named = f"no run is called {run!r}" if run else "no run could be read"
        warn(f"reasonblocks explain: {file}: {named}")
        return PROBLEM
    with replayer(settings.read(), profiled="task_profile" in settings.given) as replays:
        if replays.gathers:
            for other in _runs(file, format, None):
                replays(other)
            replays.gathered()
        replayed = replays(found)
    last = len(replayed.decisions) - 1
    if not 0 <= step <= last:
        steps = f"{found.run_id!r} has the steps 0 to {last}" if last >= 0 else f"{found.run_id!r} has no steps"
        if replayed.stopped_at is not None:
            steps += ", after which it is stopped"
        raise ConfigError("STEP", step, steps)
    if as_json:
        say(json.dumps({"run_id": found.run_id, "step": step, **account_json(replayed, step)}))
    else:
        for name, text in _rows(replayed, step):
            say(printable(f"{name:<9} {text}".rstrip()))
    return OK


def _runs(path: str, format: str | None, run_id: str | None) -> Iterator[RecordedRun]:
    for run in read_recorded(path, lambda at: None, format):
        if isinstance(run, RecordError):
            warn(str(run))
        elif run_id in (None, run.run_id):
            yield run


def _rows(replayed: ReplayedRun, index: int) -> Iterator[tuple[str, str]]:
    from reasonblocks.monitors.patience import rung_in_use

    from ._decisions import reason, results, roles_of

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
    yield "said", reason(replayed, index)
