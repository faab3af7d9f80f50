"""The shipped embedders: same token ids as the reference, what their cosines tell apart, and what a thought costs."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median

import numpy
from _triplets import SITUATIONS, TRIPLETS
from numpy.typing import NDArray

from reasonblocks.backends.embed import HashEmbedder, StaticEmbedder
from reasonblocks.backends.embed._static import table
from reasonblocks.engine._assess import TEXT_BYTES
from reasonblocks.exceptions import RecordError
from reasonblocks.ports import Memo
from reasonblocks.util import text
from reasonblocks.util.text import cut_with_hash
from reasonblocks_workbench.calibration.similarity import FITTED, TIERS_FITTED, Compared, Texts, _embedded, reached
from reasonblocks_workbench.traces import RecordedRun, read_runs

ROOT = Path(__file__).parents[1]
Row = dict[str, object]
Vectors = NDArray[numpy.float64]
Ours = StaticEmbedder | HashEmbedder
Window = tuple[str, ...]
GOAL = 0.97
"""AUC of thoughts in other words against thoughts of other subjects."""
WORDS = 195
LIMITS_US = {"cold": 100.0, "words given": 60.0}
LIMIT_LOAD_MS = 15.0
REPEATS = 400
FRESH = 7
WINDOW = 3
"""Steps of a text, as tier e1 asks."""
PAIRS = 600
OTHER_SEED = 77
"""Not those of the fit."""
LOADED = """
import time, numpy
from pathlib import Path
from reasonblocks.backends.embed import StaticEmbedder
def pages():
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) if told.exists() else 0
before, start = pages(), time.process_time()
StaticEmbedder()
print((time.process_time() - start) * 1000, (pages() - before) / 256)
"""
"""Milliseconds of CPU, and on Linux the MB that are resident afterwards."""


def token_ids() -> Iterator[Row]:
    sys.path.insert(0, str(ROOT))
    from tests.core.embed.generated import mark, texts

    wanted = json.loads((ROOT / "tests/core/embed/data/token_ids.json").read_text())["marks"].split()
    same = [mark(table().tokenizer.ids(one)) == told for one, told in zip(texts(), wanted, strict=True)]
    yield {"figure": "texts with the reference's token ids", "texts": len(same), "value": sum(same) / len(same)}


def vectors(embedder: Ours, texts: Sequence[str]) -> Vectors:
    return numpy.asarray(embedder.embed_many(texts), numpy.float64)


def auc(above: Vectors, below: Vectors) -> float:
    """The share of pairs in which the first is larger, ties half."""
    more, same = (above[:, None] > below).mean(), (above[:, None] == below).mean()
    return round(float(more + same / 2), 4)


def told_apart(embedder: Ours) -> Iterator[Row]:
    sets = {"of one idea": TRIPLETS, "of one situation": SITUATIONS, "all": TRIPLETS + SITUATIONS}
    for name, triplets in sets.items():
        thought, reworded, same_words = (vectors(embedder, [one[n] for one in triplets]) for n in range(3))
        cosines = thought @ reworded.T
        pairs, others = numpy.diag(cosines), cosines[~numpy.eye(len(cosines), dtype=bool)]
        hard = numpy.einsum("ij,ij->i", thought, same_words)
        yield {"figure": "AUC of thoughts in other words", "embedder": embedder.id, "which": name,
               "triplets": len(triplets), "against others": auc(pairs, others), "goal": GOAL,
               "against the same words": auc(pairs, hard)}  # fmt: skip
        for tier in TIERS_FITTED:
            for sort, found in (("true pairs", pairs), ("the same words", hard)):
                passed = reached(found.tolist(), embedder.curves.of(tier))
                yield {"figure": f"{sort} that pass", "embedder": embedder.id, "which": name, "tier": tier,
                       **{f"at {at:g}": round(share, 4) for at, share in passed.items()}}  # fmt: skip


def same_task(embedder: Ours, paths: Sequence[str]) -> Iterator[Row]:
    """Texts of 3 steps at one place of two runs of a task, against those of a run of another task of the same file."""
    for path in paths:
        tasks: dict[str, list[RecordedRun]] = {}
        for run in read_runs(path):
            if not isinstance(run, RecordError) and len(run.steps) >= WINDOW:
                tasks.setdefault(run.task_key, []).append(run)
        drawn = list(_drawn(tasks, Random(OTHER_SEED)))
        if drawn:
            one, same, other = (_windows(embedder, [row[n] for row in drawn]) for n in range(3))
            near, far = numpy.einsum("ij,ij->i", one, same), numpy.einsum("ij,ij->i", one, other)
            yield {"figure": "AUC of two runs of one task", "embedder": embedder.id, "file": Path(path).name,
                   "pairs": len(drawn), "value": auc(near, far)}  # fmt: skip


def _drawn(tasks: dict[str, list[RecordedRun]], chance: Random) -> Iterator[tuple[Window, Window, Window]]:
    twice = [key for key, found in tasks.items() if len(found) > 1]
    for _ in range(PAIRS if twice and len(tasks) > 1 else 0):
        key = chance.choice(twice)
        other = chance.choice(tasks[chance.choice([name for name in tasks if name != key])])
        one, same = chance.sample(tasks[key], 2)
        at = chance.randrange(min(len(one.steps), len(same.steps)) - WINDOW + 1)
        first, second, third = (_window(run, at) for run in (one, same, other))
        if first != second:
            yield first, second, third


def _window(run: RecordedRun, at: int) -> Window:
    start = min(at, len(run.steps) - WINDOW)
    return tuple(cut_with_hash(step.scored_text, TEXT_BYTES) for step in run.steps[start : start + WINDOW])


def _windows(embedder: Ours, windows: Sequence[Window]) -> Vectors:
    return numpy.asarray(_embedded(embedder, [windows]), numpy.float64)


def unrelated(embedder: Ours, texts: Texts) -> Iterator[Row]:
    for tier in TIERS_FITTED:
        best = Compared.of(embedder, texts, tier).best(OTHER_SEED)
        passed = reached(best, embedder.curves.of(tier))
        yield {"figure": "unrelated queries that pass", "embedder": embedder.id, "tier": tier, "queries": len(best),
               **{f"at {at:g}": round(share, 4) for at, share in passed.items()},
               "most": {f"{at:g}": share for at, share in FITTED.items()}}  # fmt: skip


def own_texts(embedder: Ours) -> Iterator[Row]:
    """The other triplets' texts as the bank of a thought: single sentences, and fewer than 400."""
    bank = [one[at] for at in (0, 1) for one in TRIPLETS]
    cosines = vectors(embedder, [one[0] for one in TRIPLETS]) @ vectors(embedder, bank).T
    for at in range(len(TRIPLETS)):
        cosines[at, [at, at + len(TRIPLETS)]] = -1
    for tier in TIERS_FITTED:
        passed = reached(cosines.max(axis=1).tolist(), embedder.curves.of(tier))
        yield {"figure": "unrelated thoughts that pass", "embedder": embedder.id, "tier": tier, "bank": len(bank),
               **{f"at {at:g}": round(share, 4) for at, share in passed.items()}}  # fmt: skip


def microseconds(run: Callable[[], object]) -> float:
    """The median of single runs."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        run()
        taken.append(time.perf_counter_ns() - start)
    return round(median(taken) / 1000, 1)


def costs() -> Iterator[Row]:
    embedder, memo = StaticEmbedder(), Memo()
    thoughts = " ".join(one[0] for one in TRIPLETS).split()
    size = next(end for end in range(len(thoughts)) if len(text.words(" ".join(thoughts[:end]))) >= WORDS)
    thought = " ".join(thoughts[:size])
    cut_up = text.words(thought)

    def forget(memo: Memo | None, words: Sequence[str] | None) -> object:
        if memo:
            memo.vectors._kept.clear()
        return embedder.embed_sum((thought,), words, memo)

    runs: dict[str, Callable[[], object]] = {
        "cold": lambda: forget(None, None),
        "pieces kept": lambda: forget(memo, None),
        "words given": lambda: forget(memo, cut_up),
        "seen before": lambda: embedder.embed_sum((thought,), cut_up, memo),
    }
    for how, run in runs.items():
        taken = microseconds(run)
        yield {"figure": "microseconds of a thought", "how": how, "words": len(cut_up), "value": taken,
               "limit": LIMITS_US.get(how)}  # fmt: skip


def loading() -> Iterator[Row]:
    command = [sys.executable, "-c", LOADED]
    told = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(FRESH)]
    yield {"figure": "milliseconds of CPU to load", "value": round(median(float(one) for one, _ in told), 1),
           "limit": LIMIT_LOAD_MS, "processes": FRESH}  # fmt: skip
    yield {"figure": "MB of memory, resident", "value": round(median(float(one) for _, one in told), 1)}


def figures(paths: Sequence[str]) -> Iterator[Row]:
    yield from token_ids()
    texts = Texts()
    for path in paths:
        for run in read_runs(path):
            if not isinstance(run, RecordError):
                texts.add(run, kind=(run.source or "").partition("_")[0])
    for embedder in (StaticEmbedder(), HashEmbedder()):
        yield from told_apart(embedder)
        yield from own_texts(embedder)
        yield from unrelated(embedder, texts) if paths else ()
        yield from same_task(embedder, paths)
    yield from costs()
    yield from loading()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("paths", nargs="*", metavar="RUNS", help="recorded runs, for queries that nothing should pass")
    given = parser.parse_args()
    for row in figures(given.paths):
        print(
            json.dumps(row) if given.json else "  ".join(f"{name}: {value}" for name, value in row.items()), flush=True
        )


if __name__ == "__main__":
    main()
