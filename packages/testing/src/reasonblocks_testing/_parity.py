"""Parity: each call's decision and guidance as JSON, comparable without the framework that produced it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from reasonblocks.client import ReasonBlocks
from reasonblocks.events import StepEvent
from reasonblocks.ports import TelemetrySink
from reasonblocks.types import JSON, AdapterCaps, StepLogEntry

from ._checks import guidance_of_parts
from ._scripted import RecordingSink
from .harness import Harness, Ran, Seen
from .script import Script, Turn

Line: TypeAlias = "dict[str, JSON]"
FINAL = "final"
"""The `entry` of the last line of a run; in the others it is the number of the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityRun:
    """A script with the client that steers it.

    - `name`: the run's name in the parity file.
    - `client`: returns a new client that sends its events to the given sink. It is called for each run, because
      scripted backends count their requests.
    - `resume_at`: the calls before which the run pauses and resumes.
    """

    name: str
    script: Script
    client: Callable[[TelemetrySink], ReasonBlocks]
    resume_at: tuple[int, ...] = ()


class Runner(Protocol):
    """The part of a harness that parity uses."""

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]: ...


def parity_lines(harness: Runner, run: ParityRun, mode: str) -> tuple[list[Line], list[str]]:
    """Run a script in one mode; return its entries, the final one last, and the faults of the run itself.

    An entry has every field of the step log, `scores` (of all monitors) and `completed` (the step as the adapter read
    it). From the model's request it has `guidance` (each part with our frame, from the frame to its end) and
    `model_asked`. The final entry has the run's `outcome`.
    """
    sink = RecordingSink()
    with run.client(sink) as rb:
        (ran,) = harness.run(rb, run.script, mode, resume_at=run.resume_at)
    events: dict[tuple[int, bool], StepEvent] = {}
    for event in sink.events:
        if isinstance(event, StepEvent):
            events.setdefault(_position(event), event)  # a process that resumes a run sends its last event again
    where: Line = {"mode": mode, "run": run.name}
    seen = (*ran.seen, *[None] * len(ran.log))
    lines: list[Line] = [
        {**_decided(entry, events.get((entry.step, False))), **_read(request), **where, "entry": entry.step}
        for entry, request in zip(ran.log, seen)
    ]
    if ran.final is not None:
        decided = _decided(ran.final, events.get((ran.final.step, True)))
        lines.append({**decided, **where, "entry": FINAL, "outcome": ran.outcome})
    return lines, _faults(ran, run.script)


def write_parity(
    harness: Harness, runs: Iterable[ParityRun], path: str | os.PathLike[str], *, framework: str, code: str
) -> dict[str, list[str]]:
    """Write every run in every mode of the harness to one file; return the faults of each run, by its name.

    The first line has `framework` (its name and version), `code` (a digest by which a reader detects an outdated file),
    `modes` and `caps`. Each other line is an entry of `parity_lines`, with exact numbers. With `caps.tool_errors=False`
    no result of a script is an error. The file is written beside `path` and renamed when it is complete.
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
    """Return those abilities of a framework that change its entries, as JSON."""
    return {
        "ephemeral": caps.ephemeral,
        "placements": sorted(caps.placements),
        "max_guidance_chars": caps.max_guidance_chars,
        "tool_errors": caps.tool_errors,
    }


def caps_of(line: Mapping[str, Any]) -> AdapterCaps:
    """Return the caps that `caps_line` wrote."""
    return AdapterCaps(**{**line, "placements": frozenset(line["placements"])})


def without_errors(run: ParityRun) -> ParityRun:
    """Return the run as a framework sees it that does not report which results are errors."""
    return replace(run, script=replace(run.script, turns=tuple(map(_without_errors, run.script.turns))))


def _without_errors(turn: Turn) -> Turn:
    return replace(turn, results=tuple(replace(result, is_error=None) for result in turn.results))


def _write(write: Callable[[str], object], line: Line) -> None:
    write(json.dumps(line, allow_nan=False) + "\n")


def _position(event: StepEvent) -> tuple[int, bool]:
    """Return the number of the call, and whether the event is that of a final step."""
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
    return {"guidance": guidance_of_parts(seen), "model_asked": seen.model}


def _faults(ran: Ran, script: Script) -> list[str]:
    calls = len(script.turns)
    counts: Sequence[tuple[str, int]] = (("entries", len(ran.log)), ("requests", len(ran.seen)))
    found = [f"{count} {noun} for {calls} calls" for noun, count in counts if count != calls]
    found += [] if ran.error is None else [f"it raised {ran.error!r}"]
    found += [] if ran.outcome == "success" else [f"its outcome is {ran.outcome!r}"]
    return found + ([] if ran.final is not None else ["it has no final entry"])


Entry: TypeAlias = Mapping[str, Any]

NOT_COMPARED = {
    "framework": "names the framework",
    "mode": "names the mode",
    "run": "the key of the lookup",
    "timestamp": "a time",
    "latency_ms": "a time",
    "overhead_ms": "a time",
}
"""Fields that are not compared, with the reason. All other fields are."""
LIVE_ONLY = (
    "attempts", "cache_read_tokens", "cache_write_tokens", "input_tokens", "model_asked", "model_id",
    "output_tokens", "tokens", "tool_calls",
)  # fmt: skip
"""Fields that record the model call and not a decision; only they may be declared as limits."""
MISSING = "missing"
SHOWN = 300
"""The most characters of a value that a message shows."""


def run_differences(
    where: str, theirs: Sequence[Entry], core: Sequence[Entry], *, leave: Collection[str] = ()
) -> list[str]:
    """Return a text for each field that differs from the core's, and one if the numbers of entries differ."""
    found = [f"{where}: {len(theirs)} entries, the core has {len(core)}"] if len(theirs) != len(core) else []
    for entry, expected in zip(theirs, core):
        place = f"{where}, entry {expected['entry']}"
        found += [f"{place}: {text}" for text in entry_differences(entry, expected, leave=leave)]
    return found


def entry_differences(entry: Entry, core: Entry, *, leave: Collection[str] = ()) -> list[str]:
    """Return a text for each field that differs, except those in `leave`; empty if the entries are equal."""
    left, right = dict(_flat(entry)), dict(_flat(core))
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
