"""The steps of recorded runs at which this build, or another one, speaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from reasonblocks import ReasonBlocks
from reasonblocks.backends.profiles import ProfileMemory
from reasonblocks.monitors.profile import patience_of
from reasonblocks_workbench.replay import ReplayedRun, replay
from reasonblocks_workbench.traces import RecordedRun

RULES = ("E3Injection", "standing_rules")
"""Sources of texts that are no interventions."""


class Learning(ProfileMemory):
    """Profiles that take recorded runs, too."""

    keeps_replayed = True


def told_by(rb: ReasonBlocks, runs: Sequence[RecordedRun]) -> list[list[int]]:
    """Return the steps after which a client intervenes, by run."""
    return [_told(replay(rb, run)) for run in runs]


def _told(replayed: ReplayedRun) -> list[int]:
    return [
        at
        for at, decision in enumerate(replayed.decisions)
        if any(injection.source not in RULES for injection in decision.injections)
    ]


def learned(runs: Sequence[RecordedRun], others: Sequence[RecordedRun]) -> tuple[str, list[list[int]]]:
    """Return the patience that these runs teach, and when the `others` are told with it."""
    profiles = Learning()
    with ReasonBlocks(mode="observe", profile=profiles) as observing:
        for run in runs:
            replay(observing, run)
    names = {(run.source or "", run.task_profile or "coding") for run in runs}
    taught = [patience_of(profiles.read(("default", name, profile), "")).name for name, profile in sorted(names)]
    kept = ProfileMemory()
    for name, profile in names:
        for at, summary in enumerate(profiles.read(("default", name, profile), "")):
            kept.add(("default", name, profile), str(at), summary)
    with ReasonBlocks(profile=kept) as rb:
        return "; ".join(taught), told_by(rb, others)


def halves(runs: Sequence[RecordedRun]) -> tuple[list[RecordedRun], list[RecordedRun]]:
    """Return the runs to learn from, in the order of a hash of their ids, and those to measure; no task is in both."""
    own = [run for run in runs if sha256(f"own {run.task_key}".encode()).digest()[0] < 128]
    mine = {id(run) for run in own}
    own.sort(key=lambda run: sha256(run.run_id.encode()).digest())
    return own, [run for run in runs if id(run) not in mine]


def told_elsewhere(checkout: str, runs: Sequence[RecordedRun]) -> list[list[int]]:
    """Return when the build of another checkout intervenes. Raises `OSError` if it cannot replay the runs."""
    folders = [str(path) for path in sorted(Path(checkout).resolve().glob("packages/*/src"))]
    if not folders:
        raise OSError(f"{checkout!r} has no packages/*/src")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        for number, run in enumerate(runs):
            file.write(json.dumps(_record(run, str(number))) + "\n")
        file.flush()
        done = subprocess.run(
            [sys.executable, "-m", "reasonblocks", "replay", file.name, "--json"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)}, capture_output=True, encoding="utf-8",
            check=False,
        )  # fmt: skip
    found = {run["run_id"]: run["steps"] for run in map(json.loads, done.stdout.splitlines())}
    if len(found) != len(runs):
        raise OSError(f"{checkout!r} replayed {len(found)} of {len(runs)} runs: {done.stderr[-500:]}")
    return [
        [step["step"] for step in found[str(at)] if any(one["source"] not in RULES for one in step["injections"])]
        for at in range(len(runs))
    ]


def _record(run: RecordedRun, name: str) -> dict[str, Any]:
    """Return a run in the plain format, as both builds read it."""
    steps = []
    for step in run.steps:
        call = step.tool_calls[0] if step.tool_calls else None
        flags = [result.is_error for result in step.tool_results if result.is_error is not None]
        steps.append(
            {
                "thought": step.thought or step.reasoning,
                "action": call.name if call else "",
                "action_input": call.arguments if call else "",
                "observation": "\n".join([result.output for result in step.tool_results]),
                **({"is_error": any(flags)} if flags else {}),
            }
        )
    return {"run_id": name, "task": run.task, "task_profile": run.task_profile, "steps": steps}
