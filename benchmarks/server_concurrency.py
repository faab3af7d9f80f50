"""Measures the real server under load: the time of evaluations, and the events that it stores without loss.

The server runs in separate processes, with SQLite and, if PostgreSQL is installed, with a PostgreSQL server that is
started for this. The client is another process. All of them share the cores of this machine. Each of several runs sends
its next step as soon as it has the answer to the last one. 8 clients send events in compressed batches of 64; then the
benchmark reads the runs back and counts the missing events.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _serving import Serving, serving

ROOT = Path(__file__).resolve().parents[1]
CLIENT = Path(__file__).with_name("_server_concurrency_client.py")
RUNS = (1, 16, 64)
WORKERS = (1, 2)
SECONDS = 5.0
EVENTS = 20_000
CLIENTS = 8
WARM_S = 0.5
"""Seconds of evaluations before the measurement, in which each worker fills its caches."""
TIMEOUT_S = 300.0


@contextmanager
def database(name: str) -> Iterator[str | None]:
    """Yield the URL of a new database; None for the default file."""
    if name == "sqlite":
        yield None
        return
    from tests.server.postgres import Postgres

    postgres = Postgres(fsync="on", synchronous_commit="on", full_page_writes="on", shared_buffers="128MB")
    try:
        postgres.start()
        yield postgres.new_database()
    finally:
        postgres.close()


def why_no_postgres() -> str | None:
    """Return the reason why PostgreSQL cannot be measured here, or None."""
    sys.path.append(str(ROOT))  # the tests know how to start one
    from tests.server.postgres import why_not

    return why_not()


def client(what: str, server: Serving, count: int, size: float) -> dict[str, Any]:
    command = [sys.executable, str(CLIENT), what, server.url, server.key, str(count), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def stored(server: Serving) -> int:
    """Return the number of events in the server's list of runs."""
    found, cursor = 0, ""
    while True:
        request = urllib.request.Request(
            f"{server.url}/v1/monitor/runs?limit=200{cursor}", headers={"Authorization": f"Bearer {server.key}"}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            body: dict[str, Any] = json.load(answer)
        found += sum(int(run["steps"]) + 1 + (run["finished"] is not None) for run in body["runs"])
        if not body["next_cursor"]:
            return found
        cursor = f"&cursor={body['next_cursor']}"


def measured(kind: str, workers: int, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows for one database and one number of workers."""
    common = {"database": kind, "workers": workers}
    with (
        TemporaryDirectory() as folder,
        database(kind) as url,
        serving(Path(folder), workers=workers, database_url=url) as server,
    ):
        for runs in RUNS if kind == "sqlite" else ():  # evaluations read no table
            client("evaluate", server, runs, WARM_S)
            yield {"what": "evaluate", **common, "runs": runs, **client("evaluate", server, runs, given.seconds)}
        found = client("ingest", server, CLIENTS, given.events)
        yield {"what": "ingest", **common, **found, "lost": given.events - stored(server)}


def shown(row: dict[str, Any]) -> str:
    head = f"{row['what']:<10}{row['database']:<12}{row['workers']} workers  "
    if row["what"] == "evaluate":
        return f"{head}{row['runs']:>3} runs  {row['p50_ms']:>7.1f} ms median {row['p95_ms']:>7.1f} ms p95  " \
               f"{row['per_second']:>6.0f} a second"  # fmt: skip
    return f"{head}{row['events']} events  {row['per_second']:>6.0f} a second  {row['lost']} lost"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"seconds of each row of evaluations ({SECONDS})"
    )
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events of each row of events ({EVENTS})")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")
    given = parser.parse_args()
    kinds = ["sqlite"]
    if reason := why_no_postgres():
        print(f"PostgreSQL is left out: {reason}", file=sys.stderr)
    else:
        kinds.append("postgresql")
    lost = 0
    for kind in kinds:
        for workers in WORKERS:
            for row in measured(kind, workers, given):
                print(json.dumps(row) if given.json else shown(row), flush=True)
                lost += row.get("lost", 0) != 0
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
