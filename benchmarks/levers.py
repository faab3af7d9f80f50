"""Counts how often each lever would have acted in recorded runs, for each source, failing and successful runs apart.

The recordings know nothing of what an agent would have done then. --columns explains every column.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath

from reasonblocks import Budget, Escalate, ReasonBlocks
from reasonblocks.exceptions import RecordError
from reasonblocks.types import AdviceRequest
from reasonblocks_workbench.replay import ReplayedRun, replay
from reasonblocks_workbench.traces import RecordedRun, read_runs

CALLS = 40
KINDS: Mapping[str, str] = {"failure": "failing", "success": "successful"}
COLUMNS: Mapping[str, str] = {
    "runs": "recorded runs of the source with this outcome",
    "told": f"runs in 100 that a budget of {CALLS} calls is told to",
    "landed": "runs in 100 that are told to deliver",
    "ended": "runs in 100 that this budget ends",
    "doubt": 'runs in 100 whose end gets a second look with "doubt"',
    "unchecked": 'the same with "unchecked"',
    "escalated": "runs in 100 with an escalation, by Escalate(after=1, dwell=4, times=2)",
    "calls": "calls in 100 that are escalated",
    "at once": "runs in 100 with an escalation, with after=0",
    "asked": "questions to an advisor in 100 runs",
}


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", nargs="*", metavar="RUNS", help="files that `reasonblocks replay` reads")
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    options.add_argument("--limit", type=int, metavar="N", help="at most N runs of each source")
    options.add_argument("--columns", action="store_true", help="say what each column is, and stop")
    options.add_argument("--texts", metavar="FILE", help="also write every text of a second look and of a budget")
    return options


class Counted:
    """The counts of the runs of one source with one outcome."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def row(self) -> dict[str, str]:
        runs, steps = self.counts["runs"], self.counts["steps"]
        shares = {name: f"{100 * self.counts[name] / (steps if name == 'calls' else runs):.0f}" for name in COLUMNS}
        return {**shares, "runs": str(runs)}


class Replays:
    """The runs under each lever alone."""

    def __init__(self) -> None:
        def client(**options: object) -> ReasonBlocks:
            return ReasonBlocks(profile=None, base_url="", e_traces_enabled=False, **options)  # type: ignore[arg-type]

        self._budget = client(budget=Budget(calls=CALLS))
        self._look = client(second_look="always", mode="observe")
        self._after = client(escalate=Escalate(model="strong"))
        self._at_once = client(escalate=Escalate(model="strong", after=0))
        self._asked = 0
        self._advised = client(advisor=self._advise)

    def _advise(self, request: AdviceRequest) -> str:
        self._asked += 1
        return "Read the log."

    def count(self, run: RecordedRun, counted: Counted) -> Iterator[dict[str, object]]:
        """Count one run, and yield the texts that it would have got."""
        counts = counted.counts
        counts.update(runs=1, steps=len(run.steps))
        limited = replay(self._budget, run)
        lines = [
            (at, told.text)
            for at, decision in enumerate((limited.start, *limited.decisions))
            for told in decision.injections
            if told.source == "BudgetInjection"
        ]
        ended = limited.stopped_at is not None
        counts.update(told=bool(lines), landed=any("deliver" in text for _, text in lines), ended=ended)
        looked = replay(self._look, run)
        doubts = {doubt.monitor for doubt in looked.doubts}
        counts.update(doubt="claim_contradiction" in doubts, unchecked=bool(doubts))
        escalated = _escalated(replay(self._after, run))
        counts.update(escalated=bool(escalated), calls=len(escalated))
        counts.update({"at once": bool(_escalated(replay(self._at_once, run)))})
        self._asked = 0
        replay(self._advised, run, advise=True)
        counts.update(asked=self._asked)
        for at, text in lines:
            yield {"lever": "budget", "run": run.run_id, "steps": len(run.steps), "before call": at, "text": text}
        for told in looked.decisions[-1].withheld if looked.decisions else ():
            yield {"lever": "look", "run": run.run_id, "doubts": sorted(doubts), "text": told.text}


def _escalated(replayed: ReplayedRun) -> Sequence[int]:
    return [at for at, decision in enumerate(replayed.decisions) if decision.route == "ESCALATE"]


def main() -> None:
    given = parser().parse_args()
    if given.columns:
        for name, meaning in COLUMNS.items():
            print(f"{name}: {meaning}")
        return
    replays, texts = Replays(), []
    if not given.json:
        print(" | ".join(["source", "outcome", *COLUMNS]))
    for path in given.paths:
        name = PurePath(path).name.split(".")[0]
        found = [run for run in read_runs(path) if not isinstance(run, RecordError) and run.steps]
        kinds: dict[str, Counted] = {}
        for run in islice(found, given.limit):
            if (kind := KINDS.get(run.outcome_kind)) is not None:
                texts += [{"source": name, **text} for text in replays.count(run, kinds.setdefault(kind, Counted()))]
        for kind in sorted(kinds):
            row = {"source": name, "outcome": kind, **kinds[kind].row()}
            print(json.dumps(row) if given.json else " | ".join(row.values()), flush=True)
    if given.texts:
        with open(given.texts, "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(text, ensure_ascii=False)}\n" for text in texts)


if __name__ == "__main__":
    main()
