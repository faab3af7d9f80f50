"""Compares a client of a server with an embedded one: recorded runs, entry by entry, with the bytes on the wire.

Each run is steered twice, in one of several ways: plain, with monitors of the caller's own, in mode observe, restored
from a snapshot in its middle, beside a fork of itself, on event loops, with settings of its own. The server is a
scripted rb-api on 127.0.0.1, or with `--server` the real one, in a process of its own. The runs are shared out over all
files, and within a file chosen by a digest of their id.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from itertools import chain, islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from _serving import serving

from reasonblocks.backends.local_store import LocalStore
from reasonblocks_testing._http_parity import WAYS, Compared, Way, compared, recorded, shared_out
from reasonblocks_testing._parity_runs import LESSONS, long_runs, store_of
from reasonblocks_workbench.traces import RecordedRun, read_runs

RUNS = 500
COUNTS = ("runs", "entries", "texts", "differences")
SHOWN = 5
"""Differences of one way that are printed."""


def chosen(paths: Sequence[str], count: int) -> list[RecordedRun]:
    """Return runs of all files in turn, those of a file in the order of their ids' digests."""
    files = [sorted(runs_of(path), key=lambda run: hashlib.sha256(run.run_id.encode()).digest()) for path in paths]
    in_turn = (run for run in chain.from_iterable(zip_longest(*files)) if run is not None)
    return list(islice(in_turn, count))


def runs_of(path: str) -> Iterator[RecordedRun]:
    return (run for run in read_runs(path) if isinstance(run, RecordedRun) and len(run.steps) > 1)


def own_run() -> RecordedRun:
    """Return the long run of the parity tests as a recorded one."""
    return recorded(next(long_runs()).script)


def row(found: Compared, seconds: float) -> dict[str, object]:
    return {**asdict(found), "differences": len(found.differences), "seconds": round(seconds, 1)}


def total(rows: Sequence[dict[str, object]]) -> dict[str, object]:
    return {
        "way": "all",
        **{name: sum(int(str(row[name])) for row in rows) for name in COUNTS},
    }


def measured(way: Way, runs: Sequence[RecordedRun], *, real: bool) -> dict[str, object]:
    """Compare the runs of one way, with a new server: the runs of another way would make agents usual there."""
    started = time.monotonic()
    with real_server() if real else nullcontext() as server:
        found = compared(way, runs, server=server)
    for text in found.differences[:SHOWN]:
        print(text, file=sys.stderr)
    return row(found, time.monotonic() - started)


@contextmanager
def real_server() -> Iterator[tuple[str, str]]:
    """Yield the URL and the key of a real server that has the patterns of the embedded client."""
    with TemporaryDirectory() as folder:
        with LocalStore(Path(folder) / "patterns.db") as store:
            store.add(store_of(LESSONS).list("default"))
        with serving(Path(folder)) as served:
            yield served.url, served.key


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="files of recorded runs; without one, a run of the library's own")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs in all (default {RUNS})")
    parser.add_argument("--server", action="store_true", help="compare with the real server, reasonblocks-server")
    parser.add_argument("--json", action="store_true", help="print one JSON object a way, and one of all")
    given = parser.parse_args()
    logging.getLogger("reasonblocks").setLevel(logging.ERROR)  # a doubt in a run is one of the compared fields
    by_way = shared_out(chosen(given.paths, given.runs)) if given.paths else {way.name: [own_run()] for way in WAYS}
    rows = [measured(way, by_way[way.name], real=given.server) for way in WAYS]
    for line in (*rows, total(rows)):
        counts = (f"{line[name]:>8} {name}" for name in COUNTS)
        shown = f"{line['way']:<24}{''.join(counts)}"
        print(json.dumps(line) if given.json else shown)
    return 1 if total(rows)["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
