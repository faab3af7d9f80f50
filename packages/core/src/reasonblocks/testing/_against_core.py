"""Compares a harness with the core, run by run and mode by mode; counts entries and lists differences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..exceptions import ConfigError
from ._differences import LIVE_ONLY, Entry, run_differences
from ._harness import Harness
from ._loop import LoopHarness
from ._parity import ParityRun, Runner, parity_lines, without_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The result of one run in one mode. `declared` counts the differences of each field that the harness declares."""

    run: str
    mode: str
    entries: int
    differences: Sequence[str]
    declared: Mapping[str, int]


def against_core(harness: Harness, runs: Iterable[ParityRun], modes: Sequence[str]) -> Iterator[Compared]:
    """Compare each run in each mode, and yield each result at once."""
    limits = limits_of(harness)
    for given in runs:
        run = given if harness.caps.tool_errors else without_errors(given)
        core, _ = _entries(LoopHarness(harness.caps), run, "sync")
        for mode in modes:
            theirs, faults = _entries(harness, run, mode)
            where = f"{run.name}, {mode}"
            wrong = run_differences(where, theirs, core, leave=limits)
            yield Compared(
                run=run.name,
                mode=mode,
                entries=len(core),
                differences=[*(f"{where}: {fault}" for fault in faults), *wrong],
                declared={
                    field: len(run_differences(where, theirs, core, leave=limits.keys() - {field})) - len(wrong)
                    for field in limits
                },
            )


def limits_of(harness: Harness) -> Mapping[str, str]:
    """Return the harness's `parity_limits`, if any: fields that its framework cannot report, and why.

    Raises `ConfigError` for a field that steering decides, and for a limit without a reason.
    """
    limits: Mapping[str, str] = getattr(harness, "parity_limits", {})
    for field, reason in limits.items():
        if field not in LIVE_ONLY and not field.startswith("completed."):
            rule = f"a decision is never a limit; {', '.join(LIVE_ONLY)} and what begins with completed. may be"
            raise ConfigError("parity_limits", field, rule)
        if not reason:
            raise ConfigError("parity_limits", field, "needs a reason: what the framework does instead")
    return limits


def _entries(harness: Runner, run: ParityRun, mode: str) -> tuple[list[Entry], list[str]]:
    """Return a run's entries as read from a file: numbers and texts as in JSON."""
    lines, faults = parity_lines(harness, run, mode)
    return json.loads(json.dumps(lines)), faults
