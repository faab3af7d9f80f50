"""Implements `reasonblocks explain`: why an agent was told something after a step of a recorded run, or why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.monitors.excerpts import call_line

from .files import read_recorded
from .options import Format, Settings, exclusive, expand_options, whole
from .output import OK, PROBLEM, printable, say, warn

if TYPE_CHECKING:
    from ..replay import ReplayedRun
    from ..traces import RecordedRun


@expand_options
def explain(
    file: Annotated[str, Argument(metavar="RUN")],
    settings: Settings,
    step: Annotated[
        int | None, Argument(metavar="STEP", parser=whole, help="the number of the completed step, from 0 on")
    ] = None,
    call: Annotated[
        int | None,
        Option(parser=whole, metavar="N", help="the step before call N instead, as `watch` counts calls, from 0 on"),
    ] = None,
    run: Annotated[str | None, Option(metavar="ID", help="the run of this id; its start or end is enough")] = None,
    format: Format = None,
    as_json: Annotated[bool, Option("--json", help="print one JSON object")] = False,
) -> int:
    """Replay a recorded run and explain one step: why something was told after it, or nothing.

    It shows the step's calls and what they are taken for, the step since which nothing has changed, the newest steps (a
    letter for a dead one), and the patience. RUN is a file that `replay` reads; its first run is meant, or that of
    --run. A step is given by its number, or by that of the call before which `watch` shows it.
    """
    from ._decisions import account_json, call_after
    from ._replayer import replayer

    exclusive({"STEP": step is not None, "--call": call is not None}, required=True)
    found = _run(file, format, run)
    if found is None:
        named = f"no run is called {run!r}" if run else "no run could be read"
        warn(f"reasonblocks explain: {file}: {named}")
        return PROBLEM
    with replayer(settings) as replays:
        if replays.gathers:
            for other in _runs(file, format):
                replays(other)
            replays.gathered()
        replayed = replays(found)
    index = step_before(replayed, call) if call is not None else step
    last = len(replayed.decisions) - 1
    if index is None or not 0 <= index <= last:
        steps = f"{found.run_id!r} has the steps 0 to {last}" if last >= 0 else f"{found.run_id!r} has no steps"
        if replayed.stopped_at is not None:
            steps += ", after which it is stopped"
        if call is not None:
            raise ConfigError("--call", call, f"no step is completed right before this call; {steps}")
        raise ConfigError("STEP", step, steps)
    if as_json:
        place = {"step": index, "call": call_after(replayed, index)}
        say(json.dumps({"run_id": found.run_id, **place, **account_json(replayed, index)}))
    else:
        for name, text in _rows(replayed, index):
            say(printable(f"{name:<9} {text}".rstrip()))
    return OK


def step_before(replayed: ReplayedRun, call: int) -> int | None:
    """Return the step after which a call was decided; None if it is not one of this run."""
    calls = [replayed.run.call_after(index) for index in range(len(replayed.decisions))]
    return calls.index(call) if call in calls else None


def _run(path: str, format: str | None, name: str | None) -> RecordedRun | None:
    """Return the run of that id, else the first one of which it is the start or the end; the first one for None."""
    from ._watch import is_named

    near = None
    for run in _runs(path, format):
        if name is None or run.run_id == name:
            return run
        if near is None and is_named(run.run_id, name):
            near = run
    return near


def _runs(path: str, format: str | None) -> Iterator[RecordedRun]:
    for run in read_recorded(path, lambda at: None, format):
        if isinstance(run, RecordError):
            warn(str(run))
        else:
            yield run


def _rows(replayed: ReplayedRun, index: int) -> Iterator[tuple[str, str]]:
    from reasonblocks.monitors.patience import rung_in_use

    from ._decisions import call_after, reason, results, roles_of

    step, (account, patience, *_) = replayed.run.steps[index], replayed.stands[index]
    after = call_after(replayed, index)
    yield "step", f"{index} of {replayed.run.run_id}, {'at the end' if after is None else f'before call {after}'}"
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
