"""Measures when the monitors speak in recorded runs: were they needed, do troubles get a word, and how soon.

A dead step is one that the plain rule of `_monitors/plain.py` takes for one; the library knows nothing of it. --columns
explains every column.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from _monitors.measure import COLUMNS, Judged, judge, row
from _monitors.plain import dead_steps, spoken
from _monitors.told import halves, learned, told_by, told_elsewhere

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ReasonBlocksError, RecordError
from reasonblocks.util.json import canonical
from reasonblocks_workbench.traces import RecordedRun, read_runs

STRATA: Mapping[str, Sequence[str]] = {
    "strong coders": ("tbench_claude", "vorflux"),
    "other coders": ("miniswe_deepseek", "moatless"),
    "tools": ("tau_airline",),
}
"""Kinds of agents among the closed sources, named before any of them was measured."""
CLOSED = sorted(name for names in STRATA.values() for name in names)
"""Sources that no rule or number is chosen on, and that are measured once, after all of that is fixed: of the five
sources that had no part in the first version the three, and of the eight that had, the two, whose names have the
smallest SHA-256."""
MIN_STEPS = 4
OWN = (20, 50)
"""Numbers of an agent's own runs that its patience is learned from."""
BEFORE, AFTER = 8, 4
"""Steps of a moment that a reader sees before and after it."""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", nargs="*", metavar="RUNS", help="files that `reasonblocks replay` reads")
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    options.add_argument("--columns", action="store_true", help="say what each column is, and stop")
    options.add_argument("--before", metavar="CHECKOUT", help="also the build of another checkout, on the same runs")
    options.add_argument("--each", action="store_true", help="also a row for each source")
    chosen = options.add_mutually_exclusive_group()
    chosen.add_argument("--sources", default="", metavar="A,B", help="only these")
    chosen.add_argument("--open", action="store_true", help="only the sources that may be looked at during development")
    chosen.add_argument("--closed", action="store_true", help="only the others, once everything is chosen")
    options.add_argument("--limit", type=int, metavar="N", help="at most N runs of each source")
    options.add_argument(
        "--moments", type=int, metavar="N", help="also write N moments of each rule and source, for reading"
    )
    options.add_argument("--out", default="moments", metavar="NAME", help="NAME.jsonl and its key, NAME.key.jsonl")
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One agent's runs: those to learn from, and those that are measured, with their dead steps."""

    name: str
    own: Sequence[RecordedRun]
    runs: Sequence[RecordedRun]
    dead: Sequence[Sequence[bool]]

    def judged(self, told: Sequence[Sequence[int]]) -> Judged:
        failed = [{"failure": True, "success": False}.get(run.outcome_kind) for run in self.runs]
        return judge(self.dead, told, failed)


Told = Mapping[str, Sequence[Sequence[int]]]
"""The steps at which each rule speaks, for each run."""


def sources_of(given: argparse.Namespace) -> Iterator[Source]:
    """Yield the sources that the options ask for. A file that is named like one that they leave out is not opened."""
    only = set(filter(None, given.sources.split(","))) or (set(CLOSED) if given.closed else set())
    for path in given.paths:
        name = PurePath(path).name.split(".")[0]
        if (only and name not in only) or (given.open and name in CLOSED):
            continue
        found = [run for run in read_runs(path) if not isinstance(run, RecordError) and len(run.steps) >= MIN_STEPS]
        own, runs = halves(list(islice(found, given.limit)))
        if runs:
            yield Source(name=name, own=own, runs=runs, dead=[dead_steps(run.steps) for run in runs])


def told_in(source: Source, before: str | None) -> tuple[Told, list[str]]:
    """Return when each rule speaks in a source, and what its own runs taught."""
    found: dict[str, Sequence[Sequence[int]]] = {}
    with ReasonBlocks(profile=None) as rb:
        found["this build"] = told_by(rb, source.runs)
    notes = []
    for count in OWN:
        taught, told = learned(source.own[:count], source.runs)
        found[f"this build, {count} own runs"] = told
        notes.append(f"{min(count, len(source.own))} runs: {taught}")
    for needed, of in ((3, 5), (4, 5)):
        found[f"plain rule, {needed} of {of}"] = [spoken(dead, needed, of) for dead in source.dead]
    if before:
        found["the build before"] = told_elsewhere(before, source.runs)
    return found, notes


def measured(given: argparse.Namespace) -> Iterator[dict[str, str]]:
    """Yield a row for each rule, over all sources; with --each also one for each source."""
    rules: dict[str, dict[str, Judged]] = {}
    moments: list[dict[str, Any]] = []
    for source in sources_of(given):
        told, notes = told_in(source, given.before)
        print(f"{source.name}: {len(source.runs)} runs measured; {'; '.join(notes)}", file=sys.stderr, flush=True)
        for name, steps in told.items():
            judged = source.judged(steps)
            rules.setdefault(name, {})[source.name] = judged
            if given.each:
                yield {"rule": name, "source": source.name, **row([judged])}
        if given.moments:
            moments += sampled(source, told, given.moments)
    for name, by_source in rules.items():
        strata = {stratum: [by_source[one] for one in names if one in by_source] for stratum, names in STRATA.items()}
        for stratum, found in {**(strata if given.closed else {}), "all": [*by_source.values()]}.items():
            if found:
                yield {"rule": name, "source": stratum, **row(found)}
    if given.moments:
        write(moments, given.out)


def sampled(source: Source, told: Told, most: int) -> Iterator[dict[str, Any]]:
    """Yield moments of each rule, drawn by chance: the run up to a step, what followed, and who would speak."""
    chance = random.Random(source.name)
    for rule, steps in told.items():
        places = [(run, at) for run, said in enumerate(steps) for at in said if at + 2 < len(source.runs[run].steps)]
        for number, at in chance.sample(places, min(most, len(places))):
            run = source.runs[number]
            yield {
                "task": run.task[:800],
                "before": [shown(run, one) for one in range(max(0, at + 1 - BEFORE), at + 1)],
                "after": [shown(run, one) for one in range(at + 1, min(len(run.steps), at + 1 + AFTER))],
                "key": {"rule": rule, "source": source.name, "run": run.run_id, "step": at},
            }


def shown(run: RecordedRun, at: int) -> dict[str, str]:
    """Return a step as a reader sees it."""
    step = run.steps[at]
    calls = "; ".join([f"{call.name} {canonical(call.arguments)}" for call in step.tool_calls])
    results = "\n".join([result.output for result in step.tool_results])
    texts = {"thought": (step.thought or step.reasoning, 400), "calls": (calls, 500), "results": (results, 700)}
    return {
        "step": str(at),
        **{name: text if len(text) <= most else f"{text[: most // 2]} […] {text[-most // 2 :]}"
           for name, (text, most) in texts.items()},
    }  # fmt: skip


def write(moments: list[dict[str, Any]], name: str) -> None:
    """Write the moments in a random order, without who would speak, and the key in a file of its own."""
    random.Random(len(moments)).shuffle(moments)
    with Path(f"{name}.jsonl").open("w", encoding="utf-8") as file, Path(f"{name}.key.jsonl").open("w") as keys:
        for number, moment in enumerate(moments):
            keys.write(json.dumps({"id": number, **moment.pop("key")}) + "\n")
            file.write(json.dumps({"id": number, **moment}, ensure_ascii=False) + "\n")


def show(rows: Iterator[dict[str, str]], *, as_json: bool) -> None:
    found = list(rows)
    if not found:
        sys.exit("no recorded run of at least four steps was found")
    if as_json:
        print("\n".join(map(json.dumps, found)))
        return
    for line in ([*found[0]], *[[*one.values()] for one in found]):
        print("  ".join([line[0].ljust(26), line[1].ljust(18), *[cell.rjust(16) for cell in line[2:]]]))


def main() -> None:
    given = parser().parse_args()
    if given.columns:
        print("\n".join(f"{name:20} {meaning}" for name, meaning in COLUMNS.items()))
    elif not given.paths:
        print("nothing is measured: name files of recorded runs", file=sys.stderr)
    else:
        try:
            show(measured(given), as_json=given.json)
        except (ReasonBlocksError, OSError) as error:
            sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
