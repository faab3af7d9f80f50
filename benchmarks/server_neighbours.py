"""Measures the evaluations of one org while another one makes the most expensive requests that a server allows.

The server is `reasonblocks serve` with one worker, in a process of its own. Each row is a neighbour; the first one does
nothing. The machine's other work is in all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

import httpx

ORGS = ("busy", "other")
CHAIN = 1_000
"""Runs of the experiment, each started by the one before."""
STORED, PATHS = 5_000, 5_000
CLIENTS = 8
"""The neighbour's connections."""
EVALUATE = {"run_id": "r", "task": "Fix the tests.", "steps": [{"thought": "I look at the test once more."}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    url: str
    keys: dict[str, str]

    def client(self, org: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.keys[org]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False)


@contextmanager
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        keys = {org: _key(folder, org) for org in ORGS}
        command = [sys.executable, "-m", "reasonblocks", "serve", "--port", "0", "--data", folder, "--json"]
        limits = {"RATE_LIMIT_PER_SEC": "1000000", "RATE_LIMIT_BURST": "1000000"}
        with subprocess.Popen(command, env={**os.environ, **limits}, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield Served(url=json.loads(process.stdout.readline())["url"], keys=keys)
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:  # work that has begun may take minutes in an older build
                    process.kill()


def _key(folder: str, org: str) -> str:
    scopes = "ingest,evaluate,read,admin"
    command = ["keys", "create", "--name", "bench", "--org", org, "--scopes", scopes, "--data", folder, "--json"]
    done = subprocess.run([sys.executable, "-m", "reasonblocks", *command], capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)["key"])


def prepare(busy: httpx.Client) -> None:
    """Store what the neighbour's requests read."""
    for begin in range(0, CHAIN, 500):
        runs = [
            {"event": "run_start", "run_id": f"r{at}", "timestamp": float(at), "parent_run_id": f"r{at - 1}",
             "metadata": {"experiment_id": "e", "arm": "on", "on_fraction": 0.5}}
            for at in range(begin, begin + 500)
        ]  # fmt: skip
        busy.post("/monitor/events", json={"events": runs}).raise_for_status()
    for begin in range(0, STORED, 500):
        notes = [{"content": f"Note {at}.", "file_path": f"src/{at}.py"} for at in range(begin, begin + 500)]
        busy.post("/findings/shop", json={"findings": notes}).raise_for_status()


def hostile(busy: httpx.Client) -> object:
    text = ("apikey_" * 1_200)[:8_000]
    return busy.post("/findings/hostile", json={"findings": [{"content": f"{at} {text}"[:8_000]} for at in range(450)]})


def invalidate(busy: httpx.Client) -> object:
    return busy.post("/findings/shop/invalidate", json={"file_paths": [f"none/{at}.py" for at in range(PATHS)]})


def report(busy: httpx.Client) -> object:
    return busy.get("/monitor/experiments/e/report")


def whole(busy: httpx.Client) -> object:
    steps = [{"thought": f"Look {at}.", "tool_calls": [{"name": "read", "arguments": {"path": f"{at}"}}],
              "tool_results": [{"output": "x" * 2_000}]} for at in range(1_000)]  # fmt: skip
    return busy.post("/monitors/evaluate", json={**EVALUATE, "steps": steps})


def guess(busy: httpx.Client) -> object:
    return busy.get("/monitor/runs", headers={"Authorization": f"Bearer rbk_{time.perf_counter_ns()}_x"})


NEIGHBOURS: dict[str, Callable[[httpx.Client], object] | None] = {
    "nothing": None, "findings of 8,000 hostile characters": hostile, "5,000 paths invalidated": invalidate,
    "report of a chain of 1,000 runs": report, "evaluations of 1,000 steps": whole, "guessed keys": guess,
}  # fmt: skip


def measured(server: Served, act: Callable[[httpx.Client], object] | None, seconds: float) -> dict[str, object]:
    """Evaluate steps one after the other, while the neighbour has its requests answered."""
    ended = threading.Event()
    answers: list[int] = []

    def repeat() -> None:
        with server.client("busy") as busy:
            while act is not None and not ended.is_set():
                try:
                    found = act(busy)
                except httpx.HTTPError:
                    answers.append(0)
                else:
                    answers.append(getattr(found, "status_code", 0))

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(CLIENTS if act else 0)]
    for thread in threads:
        thread.start()
    time.sleep(1.0 if act else 0.0)
    taken, refused = list[float](), 0
    with server.client("other") as other:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            before = time.perf_counter()
            refused += other.post("/monitors/evaluate", json=EVALUATE).status_code != 200
            taken.append(1_000 * (time.perf_counter() - before))
            before = time.perf_counter()
            refused += other.post("/findings/mine/search", json={"query": "tests"}).status_code != 200
    ended.set()
    for thread in threads:
        thread.join(150)
    p95 = quantiles(taken, n=20)[-1] if len(taken) > 1 else taken[0]
    return {"evaluations": len(taken), "p50_ms": round(median(taken), 1), "p95_ms": round(p95, 1), "refused": refused,
            "neighbour": {str(code): answers.count(code) for code in sorted({*answers})}}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds for each neighbour (%(default)s)")
    parser.add_argument("--only", default="", help="neighbours that contain this text")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    given = parser.parse_args()
    for name, act in NEIGHBOURS.items():
        if given.only not in name:
            continue
        with served() as server:
            with server.client("busy") as busy:
                prepare(busy)
            found = {"while": name, **measured(server, act, given.seconds)}
        print(json.dumps(found) if given.json else "\n".join(f"{key:20}{value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
