"""Codebase memory: how often a question finds its finding, against keyword search, and what storing and recalling cost.

The questions and findings are in benchmarks/_memory/data; the numbers of the score were fitted on tune.jsonl alone.
Intervals are of 95 %, by bootstrap over questions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import numpy as np
from _memory.rankings import RANKINGS, SCOPE, Ranked

from reasonblocks import CodebaseMemory
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.findings import finding_id
from reasonblocks.types import Finding

Row = dict[str, object]
DATA = Path(__file__).parent / "_memory/data"
REPORT = ("docutils", "youtube_dl", "reasonblocks")
TUNE = "tune"
KINDS = ("identifier", "domain", "paraphrase")
MEASURES = ("recall@1", "recall@5", "mrr")
THRESHOLD = 0.25
"""The default of `recall`."""
TOP_K = 5
SAMPLES = 10_000
SEED = 20
SIZE = 10_000
REPEATS = 200
FIRST = """
import sys, time
began = time.perf_counter()
from pathlib import Path
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.types import Codebase
def search(name):
    store.search(Codebase(org_id="benchmark", codebase_id=name), sys.argv[2], top_k=5, score_threshold=0)
def pages():
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) if told.exists() else 0
with LocalFindings(sys.argv[1]) as store:
    search("none")
    before = pages()
    search("benchmark")
    print(time.perf_counter() - began, (pages() - before) / 256)
"""
"""Seconds of the first search of a new process, with its imports, and the MB that the codebase adds on Linux."""
FRESH = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of one codebase and the ids of the findings that answer it; none if nothing does."""

    codebase: str
    text: str
    kind: str
    answers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its ranks: the first place of an answer by each ranking, None if it is not there."""

    question: Question
    places: dict[str, int | None]
    shown: dict[str, Ranked]
    """What `recall` would return with its defaults, by the codebase that is asked."""


def read(name: str) -> tuple[list[Finding], list[Question]]:
    rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[1:]]
    findings = [
        Finding(
            content=row["content"],
            file_path=row["file_path"],
            finding_type=row["finding_type"],
            finding_id=row["finding"],
        )
        for row in rows
        if "finding" in row
    ]
    questions = [
        Question(codebase=name, text=row["question"], kind=row["kind"], answers=frozenset(row["answers"]))
        for row in rows
        if "question" in row
    ]
    return findings, questions


# ------------------------------------------------------------ recall


def asked(names: Sequence[str]) -> list[Asked]:
    data = {name: read(name) for name in names}
    ways = {name: {way: make(findings) for way, make in RANKINGS.items()} for name, (findings, _) in data.items()}
    found = []
    for name, (_, questions) in data.items():
        for question in questions:
            places = {way: _place(rank(question.text), question.answers) for way, rank in ways[name].items()}
            shown = {other: _shown(ways[other]["ours"](question.text)) for other in names}
            found.append(Asked(question=question, places=places, shown=shown))
    return found


def _place(ranked: Ranked, answers: frozenset[str]) -> int | None:
    return next((place for place, (_, name) in enumerate(ranked, 1) if name in answers), None)


def _shown(ranked: Ranked) -> Ranked:
    return [one for one in ranked[:TOP_K] if one[0] >= THRESHOLD]


def measured(place: int | None, measure: str) -> float:
    if place is None:
        return 0.0
    return 1 / place if measure == "mrr" else float(place <= int(measure.partition("@")[2]))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The bootstrap's 95 % of the mean."""
    chance = np.random.default_rng(SEED)
    means = np.array(values)[chance.integers(len(values), size=(SAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return round(float(low), 3), round(float(high), 3)


def recall(found: Sequence[Asked]) -> Iterator[Row]:
    answered = [one for one in found if one.question.answers]
    groups: dict[tuple[str, str], list[Asked]] = {("all", "all"): answered}
    for name in dict.fromkeys(one.question.codebase for one in answered):
        groups[name, "all"] = [one for one in answered if one.question.codebase == name]
    for kind in KINDS:
        groups["all", kind] = [one for one in answered if one.question.kind == kind]
    for (name, kind), group in groups.items():
        for way in RANKINGS:
            for measure in MEASURES:
                values = [measured(one.places[way], measure) for one in group]
                yield {"figure": measure, "codebase": name, "kind": kind, "ranking": way, "questions": len(group),
                       "value": round(float(np.mean(values)), 3), "interval": interval(values)}  # fmt: skip
    for way in RANKINGS:
        if way != "ours":
            yield from differences(answered, way)


def differences(answered: Sequence[Asked], way: str) -> Iterator[Row]:
    for measure in MEASURES:
        more = [measured(one.places["ours"], measure) - measured(one.places[way], measure) for one in answered]
        yield {"figure": f"{measure}: ours minus {way}", "questions": len(more),
               "value": round(float(np.mean(more)), 3), "interval": interval(more)}  # fmt: skip


def thresholds(found: Sequence[Asked]) -> Iterator[Row]:
    """What the default threshold keeps of the answers, and lets through of what is none."""
    own = [one.shown[one.question.codebase] for one in found if one.question.answers]
    right = [_place(shown, one.question.answers) for one in found if (shown := one.shown[one.question.codebase])]
    top = sum(1 for one in found if one.question.answers and (one.places["ours"] or TOP_K + 1) <= TOP_K)
    kept = sum(1 for place in right if place is not None)
    none = [one.shown[one.question.codebase] for one in found if not one.question.answers]
    other = [shown for one in found for name, shown in one.shown.items() if name != one.question.codebase]
    yield {"figure": "answers among the best five that reach the threshold", "questions": top,
           "value": round(kept / max(1, top), 3)}  # fmt: skip
    for name, group in {
        "answered questions": own, "questions that no finding answers": none, "questions on another codebase": other,
    }.items():  # fmt: skip
        if group:
            yield {"figure": f"{name} that get anything", "questions": len(group),
                   "value": round(float(np.mean([bool(shown) for shown in group])), 3),
                   "findings each": round(float(np.mean([len(shown) for shown in group])), 2)}  # fmt: skip


# ------------------------------------------------------------ cost


def made(count: int) -> list[Finding]:
    """Findings with words of the codebases' own, in new orders."""
    chance = Random(SEED)
    known = [finding for name in REPORT for finding in read(name)[0]]
    words = [word for finding in known for word in finding.content.split()]
    found = []
    for number in range(count):
        size = len(chance.choice(known).content.split())
        text = f"{' '.join(chance.choices(words, k=size))} {number}"
        path = f"src/part{number % 97}/{chance.choice(known).file_path}"
        given = Finding(content=text, file_path=path, created_at="2026-01-01T00:00:00+00:00")
        found.append(replace(given, finding_id=finding_id(SCOPE, given)))
    return found


def timed(runs: Iterable[Callable[[], object]]) -> Row:
    taken = []
    for run in runs:
        began = time.perf_counter()
        run()
        taken.append((time.perf_counter() - began) * 1000)
    p95 = quantiles(taken, n=20, method="inclusive")[-1] if len(taken) > 1 else taken[0]
    return {"p50_ms": round(median(taken), 3), "p95_ms": round(p95, 3), "runs": len(taken)}


def costs(count: int) -> Iterator[Row]:
    findings, questions = made(count), [one.text for name in REPORT for one in read(name)[1]]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "patterns.db"
        with LocalFindings(path) as store:
            yield {"figure": "put of all", "findings": count, **timed([lambda: store.put(SCOPE, findings)])}
        size = sum(one.stat().st_size for one in Path(folder).iterdir())
        yield {"figure": "bytes on disk, each", "findings": count, "value": round(size / count)}
        yield from first(path, questions, count)
        with LocalFindings(path) as store:
            store.search(SCOPE, questions[0], top_k=TOP_K, score_threshold=THRESHOLD)
            searches = [_search(store, questions[number % len(questions)]) for number in range(REPEATS)]
            yield {"figure": "warm search", "findings": count, **timed(searches)}
            more = [_put(store, finding) for finding in made(count + REPEATS)[count:]]
            yield {"figure": "put of one", "findings": count, **timed(more)}
        yield from facade(findings, count)


def facade(findings: Sequence[Finding], count: int) -> Iterator[Row]:
    with TemporaryDirectory() as folder, LocalFindings(Path(folder) / "new.db") as store:
        memory = CodebaseMemory("masked", store=store, root=folder)
        yield {"figure": "store_many of all, masked", "findings": count,
               **timed([lambda: memory.store_many(findings)])}  # fmt: skip
        ones = [_store(memory, number, findings[number]) for number in range(REPEATS)]
        yield {"figure": "store of one, masked", "findings": count, **timed(ones)}
        yield {"figure": "warm recall, masked", "findings": count,
               **timed([_recall(memory, finding.content[:80]) for finding in findings[:REPEATS]])}  # fmt: skip


def first(path: Path, questions: Sequence[str], count: int) -> Iterator[Row]:
    taken, memory = [], []
    for number in range(FRESH):
        command = [sys.executable, "-c", FIRST, str(path), questions[number]]
        seconds, more = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        taken.append(float(seconds) * 1000)
        memory.append(float(more))
    yield {"figure": "first search of a new process", "findings": count,
           "p50_ms": round(median(taken), 1), "p95_ms": round(max(taken), 1), "runs": len(taken)}  # fmt: skip
    yield {"figure": "MB in memory", "findings": count, "value": round(median(memory), 1)}


def _search(store: LocalFindings, query: str) -> Callable[[], object]:
    return lambda: store.search(SCOPE, query, top_k=TOP_K, score_threshold=THRESHOLD)


def _put(store: LocalFindings, finding: Finding) -> Callable[[], object]:
    return lambda: store.put(SCOPE, [finding])


def _store(memory: CodebaseMemory, number: int, finding: Finding) -> Callable[[], object]:
    return lambda: memory.store(f"{finding.content} again {number}", finding.file_path)


def _recall(memory: CodebaseMemory, query: str) -> Callable[[], object]:
    return lambda: memory.recall(query)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--tune", action="store_true", help="the questions to tune on, and no cost")
    parser.add_argument("--findings", type=int, default=SIZE, help="how many, to measure the cost; 0 leaves it out")
    given = parser.parse_args()
    found = asked([TUNE] if given.tune else REPORT)
    for rows in (recall(found), thresholds(found), costs(given.findings) if given.findings and not given.tune else ()):
        for row in rows:
            shown = json.dumps(row) if given.json else "  ".join(f"{name}: {value}" for name, value in row.items())
            print(shown, flush=True)


if __name__ == "__main__":
    main()
