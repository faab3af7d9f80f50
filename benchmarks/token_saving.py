"""Measures what token saving changes in the bill of long runs, under the rules of the providers' prompt caches.

Each run is billed call by call, with and without saving, by the rules of `_saving_bill.py`: prices are in the price of
an input token that no cache has. `worst` is the largest ratio of the two sums after any call of any run: above 1 would
mean that a run which ended there had cost more. A token is estimated as 4 characters. Without files it measures runs
that it makes itself, most of whose outputs are short and a few very long.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from _saving_bill import RULES, SILENT, Bill, Rule, Turn, bills, turns_of, worst_ratio

from reasonblocks.exceptions import ReasonBlocksError
from reasonblocks_langchain import RequestPart, TokenSaving

SEED = 20
MADE_RUNS = 12
MADE_STEPS = 60
SHORTEST, LONGEST = 200, 100_000
"""Characters of a made output: the logarithm is uniform between them."""
THOUGHT_CHARS = 300
WORDS = (
    "the a this that then first next after before again only other new last we it I need should check look read run "
    "try change add keep find test case value name list line file module function return result output parser config"
).split()

COLUMNS = {"rule": 34, "prices": 9, "calls": 7, "tokens": 12, "with": 12, "billed": 12, "with ": 12, "ratio": 7,
           "best run": 10, "worst": 8, "runs": 6}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="RUNS", help="files that `reasonblocks replay` reads")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--runs", type=int, default=50, metavar="N", help="the N longest runs (default 50)")
    parser.add_argument("--stopped", action="store_true", help='instead: what `stop_when="stalled"` would have ended')
    parser.add_argument("--keep", type=int, default=2, metavar="N", help="results never shortened (default 2)")
    given = parser.parse_args()
    if given.stopped:
        print(json.dumps(early_exits(given.paths)))
        return
    try:
        runs = recorded(given.paths, given.runs) if given.paths else made_runs()
    except (ReasonBlocksError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    if not runs:
        sys.exit("no run was found")
    if not given.json:
        of = (
            f"the {len(runs)} longest recorded runs"
            if given.paths
            else f"{len(runs)} runs made for this, none recorded"
        )
        print(f"tokens and bills of {of}\n")
        print("".join(f"{name.strip():>{width}}" for name, width in COLUMNS.items()))
    for row in measured(runs, given.keep):
        print(json.dumps(row) if given.json else table_row(row), flush=True)


def measured(runs: Sequence[Sequence[Turn]], keep: int) -> Iterator[dict[str, object]]:
    """Yield a row for each rule, with saving as it comes, and with the rule's own prices where they differ."""
    saving = TokenSaving(keep=keep)
    for rule in RULES:
        without = [[*bills(turns, rule, None)] for turns in runs]
        yield row(rule, "default", without, [[*bills(turns, rule, saving)] for turns in runs])
        own = replace(saving, read_price=rule.read, write_price=rule.write)
        if own != saving:
            yield row(rule, "given", without, [[*bills(turns, rule, own)] for turns in runs])


def row(rule: Rule, prices: str, without: list[list[Bill]], saved: list[list[Bill]]) -> dict[str, object]:
    ratios = [total(ours) / total(theirs) for ours, theirs in zip(saved, without)]
    return {
        "rule": rule.name,
        "prices": prices,
        "calls": sum(map(len, without)),
        **{f"{name}_without": sum(getattr(bill, name) for run in without for bill in run) for name in TOKENS},
        **{f"{name}_with": sum(getattr(bill, name) for run in saved for bill in run) for name in TOKENS},
        "billed_without": round(sum(map(total, without))),
        "billed_with": round(sum(map(total, saved))),
        "ratio": round(sum(map(total, saved)) / sum(map(total, without)), 4),
        "best_run": round(min(ratios), 4),
        "worst": round(max(worst_ratio(theirs, ours) for ours, theirs in zip(saved, without)), 6),
        "runs_that_save": sum(ratio < 1 for ratio in ratios),
    }


TOKENS = ("tokens", "read", "written", "plain")


def total(run: Sequence[Bill]) -> float:
    return sum(bill.billed for bill in run)


def recorded(paths: Sequence[str], most: int) -> list[list[Turn]]:
    """Return the runs with the most text."""
    from reasonblocks_workbench.traces import RecordedRun, read_runs

    runs = [run for path in paths for run in read_runs(path) if isinstance(run, RecordedRun)]
    turns = [turns_of(run.task, run.steps) for run in runs]
    return sorted(turns, key=chars, reverse=True)[:most]


def early_exits(paths: Sequence[str]) -> dict[str, object]:
    """Return what `stop_when="stalled"` would have ended of all recorded runs, and the calls and tokens after it."""
    from reasonblocks import ReasonBlocks
    from reasonblocks_workbench.replay import replay
    from reasonblocks_workbench.traces import RecordedRun, read_runs

    rb = ReasonBlocks(stop_when="stalled")
    ends, calls, tokens = Counter[str](), Counter[str](), Counter[str]()
    for run in (run for path in paths for run in read_runs(path) if isinstance(run, RecordedRun)):
        stopped_at = replay(rb, run).stopped_at
        sent = [bill.tokens for bill in bills(turns_of(run.task, run.steps), SILENT, None)][: len(run.steps)]
        after = sent[len(sent) if stopped_at is None else stopped_at + 1 :]
        ends.update(["runs", *([] if stopped_at is None else ["stopped", (run.outcome or "unknown").split(":")[0]])])
        calls.update(all=len(sent), after=len(after))
        tokens.update(all=sum(sent), after=sum(after))
    return {"stop_when": "stalled", **ends, "calls": calls["all"], "calls_after": calls["after"],
            "tokens": tokens["all"], "tokens_after": tokens["after"]}  # fmt: skip


def chars(turns: Sequence[Turn]) -> int:
    return sum(part.other_bytes + sum(map(len, part.texts)) for turn in turns for part in turn)


def made_runs() -> list[list[Turn]]:
    """Return runs with a few very long outputs among short ones."""
    words = random.Random(SEED).choices(WORDS, k=200_000)
    ends = [*accumulate(len(word) + 1 for word in words)]
    text = " ".join(words)
    assert len(text) == ends[-1] - 1 > LONGEST
    return [made_run(random.Random(f"{SEED} {run}"), text) for run in range(MADE_RUNS)]


def made_run(chance: random.Random, text: str) -> list[Turn]:
    def some(size: int) -> tuple[str]:
        start = chance.randrange(len(text) - size)
        return (text[start : start + size],)

    def turn(at: int) -> Turn:
        size = round(SHORTEST * (LONGEST / SHORTEST) ** chance.random())
        answer = RequestPart(kind="answer", key=f"answer-{at}", texts=some(THOUGHT_CHARS), other_bytes=60, blocks=2)
        return answer, RequestPart(kind="result", key=f"result-{at}", texts=some(size))

    task: Turn = (RequestPart(key="task", texts=some(400)),)
    return [task, *map(turn, range(MADE_STEPS))]


def table_row(row: dict[str, object]) -> str:
    names = ("rule", "prices", "calls", "tokens_without", "tokens_with", "billed_without", "billed_with", "ratio",
             "best_run", "worst", "runs_that_save")  # fmt: skip
    return "".join(f"{row[name]!s:>{width}}" for name, width in zip(names, COLUMNS.values()))


if __name__ == "__main__":
    main()
