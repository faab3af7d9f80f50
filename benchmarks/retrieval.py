"""What one search of a pattern store costs, by store and by how many patterns it holds; embedding is not measured."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from reasonblocks import Pattern
from reasonblocks.ports import Curve, Retrieve, SimilarityCurves
from reasonblocks.types import ETrace

SEED = 20
DIM = 256
ORGS = 50
TYPES = ("contradiction", "loop", "unverified", "churn", "sprawl", "drift")
"""The failure types of the six monitors."""
SEARCHES = {1_000: 400, 10_000: 400, 100_000: 200}
FEWEST = 12
"""Searches of a store that takes milliseconds."""
LONGEST_S = 2.0
"""After which a query is not repeated any more."""
CURVE = Curve(((0.0, 0.0), (0.5, 0.7), (0.7, 0.8), (1.0, 1.0)))
QUERIES: dict[str, dict[str, Any]] = {
    "org": {"tier": "e1", "similarity": 0.8, "failure_type": None},
    "failure_type": {"tier": "e2", "similarity": 0.7, "failure_type": "loop"},
    "all": {"tier": "e2", "similarity": 0.7, "failure_type": None},
}
COLUMNS = {
    "store": 12, "patterns": 9, "query": 14, "p50_us": 11, "p99_us": 11,
    "insert_s": 10, "open_s": 8, "memory_mb": 11, "file_mb": 9,
}  # fmt: skip
"""Inserting, opening, memory and file are of the whole store, so they are the same in its three lines."""
WARMING = 3
MOST = {"qdrant-local": 10_000}
"""Patterns beyond which a store is left out unless `--every` is given: 100,000 take the local mode minutes."""


class Known:
    """Vectors made before, by their number: those of the patterns, from `first` on the queries.

    Every tenth query is near some pattern.
    """

    id = "benchmark"
    dim = DIM
    curves = SimilarityCurves(e1=CURVE, e2=CURVE)

    def __init__(self, patterns: int, queries: int) -> None:
        chance = np.random.default_rng(SEED)
        stored, asked = units(chance, patterns), units(chance, queries)
        for at in range(0, queries, 10):
            near = stored[int(chance.integers(patterns))] + 0.2 * asked[at]
            asked[at] = near / np.linalg.norm(near)
        self.first = patterns
        self.rows = np.concatenate([stored, asked])

    def embed(self, text: str) -> Any:  # an array is no Sequence to the type checker
        return self.rows[int(text)]

    def embed_many(self, texts: Sequence[str]) -> Any:
        return self.rows[[int(text) for text in texts]]


class Store(Protocol):
    def search(self, request: Retrieve) -> tuple[ETrace, ...]: ...
    def add(self, patterns: Iterable[Pattern]) -> None: ...
    def close(self) -> None: ...


def units(chance: np.random.Generator, count: int) -> npt.NDArray[np.float32]:
    rows = chance.standard_normal((count, DIM), np.float32)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def patterns(count: int) -> Iterator[Pattern]:
    """Half of tier e1, those of 50 orgs in turn; half of tier e2, which all orgs share."""
    for number in range(count):
        is_e1 = number % 2 == 0
        yield Pattern(
            id=f"pattern-{number:06}",
            tier="e1" if is_e1 else "e2",
            org_id=f"org-{number // 2 % ORGS}" if is_e1 else None,
            failure_type=None if is_e1 else TYPES[number // 2 % len(TYPES)],
            fields={"observation": "What was seen.", "intervention": "What to do."},
            exemplars=(str(number),),
        )


def local(folder: Path, embedder: Known) -> Store:
    from reasonblocks import LocalStore

    return LocalStore(folder / "patterns.db", embedder=embedder)


class QdrantLocal:
    """The client's local mode in a folder, as one would use it: no store of ours."""

    def __init__(self, folder: Path, embedder: Known) -> None:
        from qdrant_client import QdrantClient, models

        self._models, self._embedder = models, embedder
        self._client = QdrantClient(path=str(folder / "qdrant"))
        if not self._client.collection_exists("patterns"):
            vectors = models.VectorParams(size=DIM, distance=models.Distance.COSINE)
            self._client.create_collection("patterns", vectors)

    def add(self, patterns: Iterable[Pattern]) -> None:
        self._client.upload_points("patterns", (self._point(number, one) for number, one in enumerate(patterns)))

    def _point(self, number: int, pattern: Pattern) -> Any:
        payload = {"tier": pattern.tier, "org_id": pattern.org_id, "failure_type": pattern.failure_type}
        vector = self._embedder.embed(pattern.exemplars[0]).tolist()
        return self._models.PointStruct(id=number, vector=vector, payload={**payload, "id": pattern.id})

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        models = self._models
        wanted = {"tier": request.tier, "failure_type": request.failure_type}
        if request.tier == "e1":
            wanted["org_id"] = request.org_id
        must: list[Any] = [
            models.FieldCondition(key=key, match=models.MatchValue(value=value))
            for key, value in wanted.items()
            if value
        ]
        vector = self._embedder.embed(request.query).tolist()
        self._client.query_points("patterns", vector, query_filter=models.Filter(must=must), limit=request.top_k)
        return ()

    def close(self) -> None:
        self._client.close()


STORES: dict[str, tuple[Callable[[Path, Known], Store], str | None]] = {
    "LocalStore": (local, None),
    "qdrant-local": (QdrantLocal, "qdrant_client"),
}
"""How each is made, and the module that it cannot do without."""


def measure(name: str, count: int) -> Iterator[dict[str, object]]:
    searches = SEARCHES.get(count, min(SEARCHES.values()))
    embedder = Known(count, searches)
    make, _ = STORES[name]
    with TemporaryDirectory() as given:
        folder = Path(given)
        store = make(folder, embedder)
        began = time.perf_counter()
        store.add(patterns(count))
        insert_s = time.perf_counter() - began
        store.close()
        before, began = resident_mb(), time.perf_counter()
        store = make(folder, embedder)
        for query in QUERIES:
            store.search(request(query, embedder.first))
        open_s = time.perf_counter() - began
        costs = {
            "insert_s": round(insert_s, 3),
            "open_s": round(open_s, 3),
            "memory_mb": round(resident_mb() - before, 1),
            "file_mb": round(sum(one.stat().st_blocks for one in folder.rglob("*")) * 512 / 1e6, 1),
        }
        for query in QUERIES:
            taken = list(timed(store, query, embedder, searches))
            p50, p99 = median(taken), quantiles(taken, n=100, method="inclusive")[98]
            row = {"p50_us": round(p50 * 1e6, 1), "p99_us": round(p99 * 1e6, 1), "searches": len(taken)}
            yield {"store": name, "patterns": count, "query": query, **row, **costs}
        store.close()


def timed(store: Store, query: str, embedder: Known, searches: int) -> Iterator[float]:
    """Seconds of each search."""
    for _ in range(WARMING):
        store.search(request(query, embedder.first))
    ends = time.perf_counter() + LONGEST_S
    for number in range(searches):
        asked = request(query, embedder.first + number)
        began = time.perf_counter()
        store.search(asked)
        yield time.perf_counter() - began
        if number >= FEWEST and time.perf_counter() > ends:
            return


def request(query: str, row: int) -> Retrieve:
    return Retrieve(**QUERIES[query], texts=(str(row),), top_k=1, org_id=f"org-{row % ORGS}", model="")


def resident_mb() -> float:
    """Of this process, now; 0 where the system does not say so."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def chosen(names: str) -> Iterator[str]:
    for name in names.split(","):
        module = STORES[name][1]
        if module is not None and find_spec(module) is None:
            print(f"{name} is left out: {module} is not installed", file=sys.stderr)
        else:
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--patterns", default="1000,10000,100000", help="how many, with commas between")
    parser.add_argument("--stores", default=",".join(STORES), help="which, with commas between")
    parser.add_argument("--every", action="store_true", help="also what takes minutes: the local mode at 100,000")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # the local mode says at 20,000 points that it is not meant for that
    if not given.json:
        print(f"top-1 of {ORGS} orgs, {DIM} dimensions; each store was closed and opened again\n")
        print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for name in chosen(given.stores):
        for count in map(int, given.patterns.split(",")):
            if count > MOST.get(name, count) and not given.every:
                print(f"{name} is left out at {count} patterns: --every measures it, too", file=sys.stderr)
                continue
            for row in measure(name, count):
                print(json.dumps(row) if given.json else table_row(row), flush=True)


def table_row(row: dict[str, object]) -> str:
    return "".join(f"{row[name]!s:>{width}}" for name, width in COLUMNS.items())


if __name__ == "__main__":
    main()
