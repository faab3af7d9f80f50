"""What one run leaves for parity: each call's decision and guidance as JSON, so that no reader needs its framework."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from .._client import ReasonBlocks
from .._json import evolve
from ..events import StepEvent
from ..ports import TelemetrySink
from ..types import JSON, AdapterCaps, StepLogEntry
from ._checks import read
from ._harness import Harness, Ran, Seen
from ._script import Script, Turn
from ._scripted import RecordingSink

Line: TypeAlias = "dict[str, JSON]"
FINAL = "final"
"""The entry of the last completed step, beside those numbered by their call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityRun:
    """A script, and the client that steers it: `client(sink)` is a new one each time, as scripted backends count."""

    name: str
    script: Script
    client: Callable[[TelemetrySink], ReasonBlocks]
    resume_at: tuple[int, ...] = ()


class Runner(Protocol):
    """What a harness needs for parity."""

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]: ...


def parity_lines(harness: Runner, run: ParityRun, mode: str) -> tuple[list[Line], list[str]]:
    """The run's entries in one mode, the final one last, and what was wrong with the run itself.

    An entry has every field of the step log, `scores` of all monitors, `completed` (the step as it was understood),
    and of the request that the model got `guidance` (each part that holds our frame, from there to its end) and
    `model_asked`; the final one has the run's `outcome`.
    """
    sink = RecordingSink()
    with run.client(sink) as rb:
        (ran,) = harness.run(rb, run.script, mode, resume_at=run.resume_at)
    told: dict[tuple[int, bool], StepEvent] = {}
    for event in sink.events:
        if isinstance(event, StepEvent):
            told.setdefault(_place(event), event)  # a decision that another process takes over is told of again there
    where: Line = {"mode": mode, "run": run.name}
    seen = (*ran.seen, *[None] * len(ran.log))
    lines: list[Line] = [
        {**where, "entry": entry.step, **_decided(entry, told.get((entry.step, False))), **_read(request)}
        for entry, request in zip(ran.log, seen)
    ]
    if ran.final is not None:
        decided = _decided(ran.final, told.get((ran.final.step, True)))
        lines.append({**where, "entry": FINAL, **decided, "outcome": ran.outcome})
    return lines, _faults(ran, run.script)


def write_parity(
    harness: Harness, runs: Iterable[ParityRun], path: str | os.PathLike[str], *, framework: str, code: str
) -> dict[str, list[str]]:
    """Run everything in every mode of the harness into one file; gives what was wrong with the runs, by name.

    The first line says what the file is: `framework` (name and version), `code` (a digest by which a reader knows old
    files), `modes` and `caps`: where a framework does not tell which results are errors, none of a script is. The
    others are entries, numbers exact. The file appears when it is whole.
    """
    runs, target = list(runs), Path(path)
    head: Line = {"framework": framework, "code": code, "modes": harness.modes, "caps": caps_line(harness.caps)}
    faults: dict[str, list[str]] = {run.name: [] for run in runs}
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        _write(file.write, head)
        for run in runs if harness.caps.tool_errors else map(without_errors, runs):
            for mode in harness.modes:
                lines, wrong = parity_lines(harness, run, mode)
                faults[run.name] += [f"{mode}: {text}" for text in wrong]
                for line in lines:
                    _write(file.write, {"framework": framework, **line})
    part.replace(target)
    return faults


def caps_line(caps: AdapterCaps) -> Line:
    """What of a framework's abilities shows in its entries."""
    return {
        "ephemeral": caps.ephemeral,
        "placements": sorted(caps.placements),
        "max_guidance_chars": caps.max_guidance_chars,
        "tool_errors": caps.tool_errors,
    }


def caps_of(line: Mapping[str, Any]) -> AdapterCaps:
    """The way back from `caps_line`."""
    return AdapterCaps(**{**line, "placements": frozenset(line["placements"])})


def without_errors(run: ParityRun) -> ParityRun:
    """The same run in a framework that does not tell errors from other results."""
    return evolve(run, script=evolve(run.script, turns=tuple(map(_without_errors, run.script.turns))))


def _without_errors(turn: Turn) -> Turn:
    return evolve(turn, results=tuple(evolve(result, is_error=None) for result in turn.results))


def _write(write: Callable[[str], object], line: Line) -> None:
    write(json.dumps(line, allow_nan=False) + "\n")


def _place(event: StepEvent) -> tuple[int, bool]:
    """The call, or whether it is a final step: a session that was left for another process has one of its own."""
    return event.step_index, bool(event.metadata.get("final"))


def _decided(entry: StepLogEntry, event: StepEvent | None) -> Line:
    if event is None:
        return entry.as_dict()
    completed: Line = {
        "thought": event.thought,
        "action": event.action,
        "action_input": event.action_input,
        "observation": event.observation,
        "is_error": event.is_error,
    }
    return {**entry.as_dict(), "scores": dict(event.scores), "completed": completed}


def _read(seen: Seen | None) -> Line:
    if seen is None:
        return {"guidance": None, "model_asked": None}
    return {"guidance": read(seen), "model_asked": seen.model}


def _faults(ran: Ran, script: Script) -> list[str]:
    calls = len(script.turns)
    counts: Sequence[tuple[str, int]] = (("entries", len(ran.log)), ("requests", len(ran.seen)))
    found = [f"{count} {what} for {calls} calls" for what, count in counts if count != calls]
    found += [] if ran.error is None else [f"it raised {ran.error!r}"]
    found += [] if ran.outcome == "success" else [f"its outcome is {ran.outcome!r}"]
    return found + ([] if ran.final is not None else ["it has no final entry"])


Entry: TypeAlias = Mapping[str, Any]

NOT_COMPARED = {
    "framework": "names who decided",
    "mode": "names how it was called",
    "run": "the key of the lookup",
    "timestamp": "the clock's",
    "latency_ms": "the clock's",
    "overhead_ms": "the clock's",
}
"""Fields that cannot be equal, and why. All other fields are compared."""
LIVE_ONLY = (
    "attempts", "cache_read_tokens", "cache_write_tokens", "input_tokens", "model_asked", "model_id",
    "output_tokens", "tokens", "tool_calls",
)  # fmt: skip
"""Fields that record the model call, and no decision of steering."""
MISSING = "missing"
SHOWN = 300
"""The most characters of a value that a message shows."""


def run_differences(
    where: str, theirs: Sequence[Entry], core: Sequence[Entry], *, leave: Collection[str] = ()
) -> list[str]:
    """Return a line for each field that differs from the core's, and one if the lengths differ."""
    found = [f"{where}: {len(theirs)} entries, the core has {len(core)}"] if len(theirs) != len(core) else []
    for one, other in zip(theirs, core):
        place = f"{where}, entry {other['entry']}"
        found += [f"{place}: {text}" for text in entry_differences(one, other, leave=leave)]
    return found


def entry_differences(one: Entry, core: Entry, *, leave: Collection[str] = ()) -> list[str]:
    """Return a text for each difference, without the fields in `leave`; empty if the entries are equal."""
    left, right = dict(_flat(one)), dict(_flat(core))
    fields = [name for name in dict.fromkeys((*right, *left)) if name not in NOT_COMPARED and name not in leave]
    pairs = [(name, left.get(name, MISSING), right.get(name, MISSING)) for name in fields]
    return [
        f"{name} is {_shown(value)}, the core's is {_shown(wanted)}" for name, value, wanted in pairs if value != wanted
    ]


def _flat(value: Entry, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if isinstance(part, Mapping):
            yield from _flat(part, f"{before}{name}.")
        else:
            yield f"{before}{name}", part


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"
