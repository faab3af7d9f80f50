"""Count the threads that recorded runs would have opened: `python tools/thread_causes.py [--show N] [NAME...]`.

Reads the recorded runs of `../shared/corpus/dev`, by default of all sources, and replays them. The agents of these runs
never read an injection, so causes about unheeded advice are counted too often.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.events import Event
from reasonblocks.exceptions import RecordError
from reasonblocks_testing import RecordingSink
from reasonblocks_threads.watch import SUCCEEDED, Numbers, WatchMemory, watch
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun, read_runs

CORPUS = Path(__file__).resolve().parents[2] / "shared/corpus/dev"
KINDS = ("run_stalled", "run_struggling", "monitor_unheeded")
VARIANTS: Mapping[str, Numbers] = {
    "shipped": Numbers(),
    "slow 8": Numbers(slow_calls=8),
    "slow 20": Numbers(slow_calls=20),
    "firings 4": Numbers(firings=4),
    "firings 5": Numbers(firings=5),
    "firings 6": Numbers(firings=6),
    "cap alone": Numbers(firings=10**9),
}


@dataclass(slots=True)
class Opened:
    """A thread that a run would have opened; `ended` is "recovered", "succeeded" or "" if a person is still asked."""

    kind: str
    family: str
    first: int
    call: int
    text: str
    ended: str = ""
    lasted: int = 0


@dataclass(slots=True)
class Counts:
    """The figures of the runs of one source and outcome."""

    runs: int = 0
    asking: int = 0
    threads: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)

    def add(self, opened: Sequence[Opened]) -> None:
        self.runs += 1
        self.asking += bool(opened)
        self.threads.update(one.kind for one in opened)
        self.ended.update(one.ended for one in opened)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="sources: the names of the files")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N of the threads of each source")
    parser.add_argument("--most", type=int, metavar="RUNS", help="runs of each source, at most")
    parser.add_argument("--half", choices=("first", "second"), help="half of the tasks, by the hash of their keys")
    parser.add_argument("--variants", action="store_true", help="count with other numbers, too")
    args = parser.parse_args()
    if not CORPUS.is_dir():
        print(f"skipped: no recorded runs in {CORPUS}", file=sys.stderr)
        return 0
    tables: dict[str, dict[tuple[str, str], Counts]] = {}
    for path in sorted(CORPUS.glob("*.jsonl.gz")):
        name = path.name.split(".")[0]
        if args.names and name not in args.names:
            continue
        shown = args.show
        for run, events in replayed(chosen(path, args.half, args.most)):
            for variant, numbers in VARIANTS.items() if args.variants else [("shipped", Numbers())]:
                opened = threads_of(events, numbers)
                for source in (name, "all"):
                    counts = tables.setdefault(variant, {}).setdefault((source, outcome_of(run)), Counts())
                    counts.add(opened)
                if variant == "shipped" and shown > 0 and opened:
                    shown -= 1
                    print(*story(name, run, opened[shown % len(opened)]), sep="\n")
    for variant, table in tables.items():
        print(f"\n{variant}: {VARIANTS[variant]}", *rows(table), sep="\n")
    return 0


def chosen(path: Path, half: str | None, most: int | None) -> Iterator[RecordedRun]:
    """Yield the runs with an outcome; with `half`, those of one half of the tasks."""
    runs = (run for run in read_runs(str(path)) if not isinstance(run, RecordError) and run.steps and run.outcome)
    return islice((run for run in runs if half is None or half_of(run) == half), most)


def half_of(run: RecordedRun) -> str:
    return "first" if sha256((run.task_key or run.run_id).encode()).digest()[0] % 2 else "second"


def outcome_of(run: RecordedRun) -> str:
    return "success" if run.outcome_kind == "success" else "failure"


def replayed(runs: Iterable[RecordedRun]) -> Iterator[tuple[RecordedRun, Sequence[Event]]]:
    """Yield each run with the events that its replay sends."""
    sink = RecordingSink()
    rb = ReasonBlocks(pattern_store=LocalStore(), sinks=[sink], base_url="")
    for run in runs:
        sink.events = []
        replay(rb, run)
        yield run, sink.events
    rb.close()


def threads_of(events: Sequence[Event], numbers: Numbers) -> list[Opened]:
    """Return the threads that a run opens if nobody answers."""
    memory, live, opened = WatchMemory(), dict[str, Opened](), list[Opened]()
    for event in events:
        memory, noticed = watch(memory, event, numbers)
        for one in noticed:
            if one.what == "over":
                ended = live.pop(one.family, None)
                if ended is not None:
                    ended.ended = "succeeded" if one.text == SUCCEEDED else "recovered"
                    ended.lasted = one.call - ended.call
            elif one.family not in live:
                found = Opened(kind=str(one.kind), family=one.family, first=one.first, call=one.call, text=one.text)
                live[one.family] = found
                opened.append(found)
    return opened


def rows(table: Mapping[tuple[str, str], Counts]) -> Iterator[str]:
    """Yield the lines of a table: threads per 100 runs, and of these threads the shares that ended by themselves."""
    names = "".join(f"{name.split('_')[1]:>12}" for name in KINDS)
    ends = "".join(f"{name:>11}" for name in ("recovered", "succeeded", "asked"))
    yield f"{'source':20}{'outcome':9}{'runs':>6}{names}{'any thread':>12}{ends}"
    for (source, outcome), counts in sorted(table.items()):
        total = counts.threads.total()
        per_run = "".join(f"{100 * counts.threads[kind] / counts.runs:>12.1f}" for kind in KINDS)
        any_thread = 100 * counts.asking / counts.runs
        shares = "".join(
            f"{(f'{100 * counts.ended[how] / total:.0f} %' if total else '-'):>{width}}"
            for how, width in (("recovered", 11), ("succeeded", 11), ("", 11))
        )
        yield f"{source:20}{outcome:9}{counts.runs:>6}{per_run}{any_thread:>12.1f}{shares}"


def story(source: str, run: RecordedRun, one: Opened) -> Iterator[str]:
    """Yield a thread with the steps before it and the run's last steps."""
    yield f"\n=== {source} {run.run_id} {run.outcome}: {len(run.steps)} steps; {run.task[:300]!r}"
    yield f"{one.kind} ({one.family}) at call {one.call}, since {one.first}; {one.ended or 'asked'}: {one.text}"
    before = range(max(0, one.call - 4), min(one.call, len(run.steps)))
    last = range(max(one.call, len(run.steps) - 3), len(run.steps))
    for at in (*before, *last):
        step = run.steps[at]
        what = f"{step.thought[:250]!r} {step.action}({step.action_input[:200]!r}) -> {step.observation[:250]!r}"
        yield f"  [{at}] {what}"


if __name__ == "__main__":
    sys.exit(main())
