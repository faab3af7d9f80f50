"""What `reasonblocks learn` finds in recorded runs, and whether a held-out task's runs are told what fits: --columns.

Each task in turn is left out: patterns are learned from the runs of all others and stored; then the runs of the task
left out ask as live ones would, at tier e1 with the texts of the last 3 steps and a similarity of .8, at e2 with 5
steps, .7 and the failure type of the evaluation, each pattern's own gate going first. `--leave run` leaves out one
failed run at a time, so that other runs of its task are learned from: an agent that meets its task again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.backends.embed import HashEmbedder, default_embedder
from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.exceptions import ReasonBlocksError
from reasonblocks.ports import Embedder, Retrieve
from reasonblocks.types import Tier
from reasonblocks_workbench.learning import Gathered, Proposal, RunDigest, digest_of, proposals
from reasonblocks_workbench.learning._digest import asks, failed_before, texts_at
from reasonblocks_workbench.learning._learn import Similarity
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun, read_runs

ORG = "bench"
SEARCHED: tuple[Tier, ...] = ("e1", "e2")
COLUMNS = {
    "tier": "e1 or e2",
    "at": "`sustained`: where failed runs got into sustained trouble; `one error`: the first error of failed runs that "
    "had none; `calm`: steps of successful runs without sustained trouble; `one error, success`: those of them where "
    "a tool failed or found nothing in the last 5 steps",
    "points": "so many points of the runs left out",
    "asked": "of these: the state is not FAST and, for e1, its gate is open, so that a live run asks",
    "there": "asked, and a pattern learned from the same failure type and the same tool is in the store",
    "same": "asked, and the best pattern was learned from the same failure type and the same tool",
    "tool": "asked, and it was learned from another failure type, and the same tool",
    "other": "asked, and it was learned from another tool",
    "nothing": "asked, and nothing was near enough",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a run of a task left out may ask. Of a calm one `tool` is "", so that whatever it gets is another's."""

    at: str
    asked: frozenset[Tier]
    texts: dict[Tier, tuple[str, ...]]
    failure_type: str | None
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A run, as learning sees it and as the points at which it may ask."""

    digest: RunDigest
    points: tuple[Point, ...]


def looked(rb: ReasonBlocks, run: RecordedRun) -> Looked:
    replayed = replay(rb, run)
    digest = digest_of(replayed, {})
    trouble, decisions = digest.trouble, replayed.decisions

    def point(at: str, step: int, tool: str) -> Point:
        return Point(
            at=at,
            asked=frozenset(tier for tier in SEARCHED if asks(tier, decisions, step)),
            texts={tier: texts_at(run.steps, step, tier) for tier in SEARCHED},
            failure_type=decisions[step].failure_type,
            tool=tool,
        )

    points: list[Point] = []
    if digest.succeeded and not (trouble and trouble.sustained):
        for step in range(len(decisions) - 1):
            failed = failed_before(digest.acts, step)
            points.append(point("one error, success", step, failed[0]) if failed else point("calm", step, ""))
    elif trouble and not digest.succeeded:
        points = [point("sustained" if trouble.sustained else "one error", trouble.at, trouble.kind.tool)]
    return Looked(digest=digest, points=tuple(points))


def told(
    points: Sequence[Point], tier: Tier, learned: Sequence[Proposal], embedder: Embedder
) -> Iterator[tuple[str, str, bool]]:
    """For each point: where it is, what it was told, and whether the store has what fits."""
    store = LocalStore(patterns=[one.pattern for one in learned], embedder=embedder)
    by_id = {one.pattern.id: one for one in learned}
    for point in points:
        if tier not in point.asked:
            yield point.at, "not asked", False
            continue
        request = Retrieve(
            tier=tier,
            texts=point.texts[tier],
            top_k=TIER_RULES[tier].top_k,
            similarity=TIER_RULES[tier].similarity,
            org_id=ORG,
            failure_type=point.failure_type if tier == "e2" else None,
            model="",
        )
        found = store.search(request)
        there = any(one.pattern.tier == tier and _verdict(point, one) == "same" for one in learned)
        yield point.at, _verdict(point, by_id[found[0].pattern.id]) if found else "nothing", there


def _verdict(point: Point, found: Proposal) -> str:
    if not point.tool or found.tool != point.tool:
        return "other"
    return "same" if (found.pattern.failure_type or None) == point.failure_type else "tool"


def left_out(runs: Sequence[Looked], leave: str) -> Iterator[tuple[list[Looked], list[Looked]]]:
    """The runs that ask, and those that are learned from: a task at a time, or a run that got into trouble."""
    if leave == "task":
        for task in sorted({run.digest.task_key for run in runs}):
            yield (
                [run for run in runs if run.digest.task_key == task],
                [run for run in runs if run.digest.task_key != task],
            )
        return
    for one in runs:
        if one.points and one.points[0].tool and not one.digest.succeeded:
            yield [one], [run for run in runs if run is not one]


def rows(runs: Sequence[Looked], embedder: Embedder, leave: str) -> Iterator[dict[str, object]]:
    """One row a tier and place."""
    counts: dict[tuple[Tier, str], Counter[str]] = {}
    similar = Similarity(embedder)
    for asking, others in left_out(runs, leave):
        gathered = Gathered()
        for run in others:
            gathered.add(run.digest)
        learned = proposals(gathered, org_id=ORG, embedder=embedder, similar=similar)
        points = [point for run in asking for point in run.points]
        for tier in SEARCHED:
            for at, verdict, there in told(points, tier, learned, embedder):
                counts.setdefault((tier, at), Counter()).update([verdict, "points", *(["there"] if there else [])])
    for (tier, at), found in sorted(counts.items(), key=lambda one: (one[0][0], one[0][1] == "calm", one[0][1])):
        row: dict[str, object] = {"tier": tier, "at": at, "points": found["points"]}
        row["asked"] = found["points"] - found["not asked"]
        yield row | {name: found[name] for name in ("there", "same", "tool", "other", "nothing")}


def bench(path: str, embedder: Embedder, most: int | None, leave: str) -> Iterator[dict[str, object]]:
    """The counts of one file, and its rows."""
    with ReasonBlocks(e_traces_enabled=False) as rb:
        read = (run for run in read_runs(path) if isinstance(run, RecordedRun) and run.steps and run.has_outcome)
        runs = [looked(rb, run) for _, run in zip(range(most or sys.maxsize), read, strict=False)]
    gathered = Gathered()
    for run in runs:
        gathered.add(run.digest)
    found = proposals(gathered, org_id=ORG, embedder=embedder)
    yield {
        "file": path.rsplit("/", 1)[-1],
        "runs": len(runs),
        "failed": sum(not run.digest.succeeded for run in runs),
        "sustained": sum(point.at == "sustained" for run in runs for point in run.points),
        "proposals_e1": sum(one.pattern.tier == "e1" for one in found),
        "proposals_e2": sum(one.pattern.tier == "e2" for one in found),
        "embedder": embedder.id,
    }
    yield from rows(runs, embedder, leave)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", nargs="*", metavar="RUNS", help="files that `reasonblocks replay` reads")
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    options.add_argument("--columns", action="store_true", help="say what each column is, and stop")
    options.add_argument("--hash", action="store_true", help="with the HashEmbedder")
    options.add_argument("--leave", choices=("task", "run"), default="task", help="what is left out (task)")
    options.add_argument("--runs", type=int, metavar="N", help="only so many runs of each file")
    given = options.parse_args()
    if given.columns:
        print("\n".join(f"{name:10} {meaning}" for name, meaning in COLUMNS.items()))
        return
    if not given.paths:
        print("nothing is measured: name files of recorded runs", file=sys.stderr)
    for path in given.paths:
        try:
            for row in bench(path, HashEmbedder() if given.hash else default_embedder(), given.runs, given.leave):
                print(json.dumps(row) if given.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)
        except (ReasonBlocksError, OSError) as error:
            sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
