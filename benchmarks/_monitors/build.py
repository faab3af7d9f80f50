"""Replays runs with another build of the library, in a process of its own, for comparison with this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from reasonblocks.monitors.builtin import MONITORS
from reasonblocks.types import FSMState
from reasonblocks_workbench.traces import RecordedRun

from .flat import records_of
from .trail import STANDING_RULES, Intervention, Judge, Trail

__all__ = ["other_build", "package_folder", "write_numbered"]

SOURCES = ("packages/core/src", "src", ".")
"""Folders of a checkout that may hold the package."""
MONITOR_OF = {monitor.failure_type: monitor.name for monitor in MONITORS}


def other_build(checkout: str) -> Judge:
    """Return the judge that runs `reasonblocks replay` of a checkout. Raises `OSError` if it holds no package."""
    return partial(_replayed, package_folder(checkout))


def package_folder(checkout: str) -> str:
    """Return the folder to import the package from. Raises `OSError` if the checkout holds none."""
    for folder in SOURCES:
        if (source := Path(checkout, folder)).joinpath("reasonblocks", "__init__.py").is_file():
            return str(source.resolve())
    raise OSError(f"{checkout!r} holds no package `reasonblocks`")


def _replayed(source: str, runs: Sequence[RecordedRun]) -> list[Trail]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        write_numbered(file, runs)
        command = [sys.executable, "-m", "reasonblocks", "replay", file.name, "--json"]
        env = {**os.environ, "PYTHONPATH": source}
        done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", check=False)
    trails = {int(run["run_id"]): _trail(run) for run in map(json.loads, done.stdout.splitlines())}
    if len(trails) != len(runs):
        raise OSError(f"the build in {source!r} replayed {len(trails)} of {len(runs)} runs: {done.stderr[-500:]}")
    return [trails[number] for number in range(len(runs))]


def write_numbered(file: IO[str], runs: Sequence[RecordedRun]) -> None:
    """Write the runs as their files have them, numbered: ids need not be unique."""
    records = dict(records_of(runs))
    for number, run in enumerate(runs):
        file.write(json.dumps({**records[run.file, run.line], "run_id": str(number)}) + "\n")
    file.flush()


def _trail(run: Any) -> Trail:  # Any: another program's JSON
    steps = run["steps"]
    return Trail(
        scores=tuple(step["composite"] or 0.0 for step in steps),
        fires=tuple(step["gate_decision"] == "inject" for step in steps),
        states=tuple(FSMState(step["fsm_state"]) for step in steps),
        fired=tuple(tuple(step["fired"]) for step in steps),
        gates=tuple(step["gate_decision"] for step in steps),
        told=tuple(_told(steps)),
    )


def _told(steps: Sequence[Any]) -> Iterator[Intervention]:
    """Yield the interventions. The output does not name the monitor that wrote a text, but its leading one's type."""
    for step in steps:
        texts = [given["text"] for given in step["injections"] if given["source"] != STANDING_RULES]
        if texts:
            monitor = MONITOR_OF.get(step["failure_type"]) if step["gate_decision"] == "inject" else None
            yield Intervention(step=step["step"], text="\n\n".join(texts), monitor=monitor)
