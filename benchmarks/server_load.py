"""Measures the server's CPU time for evaluations and for events.

The server is `reasonblocks serve` in separate processes. Its CPU time is read from /proc, so other work on the machine
has little influence on it. The latencies include that work.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from server_storage import BATCH, STEPS, many

from reasonblocks import ReasonBlocks, Step, StepInput, StepOutcome, ToolCall, ToolResult

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    url: str
    key: str
    parent: int

    def cpu(self) -> float:
        """Return the seconds of CPU time that the workers have used."""
        children = Path(f"/proc/{self.parent}/task/{self.parent}/children").read_text(encoding="ascii").split()
        stats = [
            Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split() for child in children
        ]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) / TICKS


@contextmanager
def served(options: list[str]) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [sys.executable, "-m", "reasonblocks", "serve", "--port", "0", "--data", folder, "--json", *options],
        env={**os.environ, "RATE_LIMIT_PER_SEC": "1000000", "RATE_LIMIT_BURST": "1000000"},
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield Server(url=told["url"], key=told["key"], parent=process.pid)
        finally:
            process.terminate()
            process.wait(15)


def evaluations(server: Server, runs: int) -> dict[str, object]:
    """Measure steps of runs that the server evaluates, one after the other."""
    taken: list[float] = []
    with ReasonBlocks(
        base_url=server.url, api_key=server.key, live_streaming_enabled=False, e_traces_enabled=False,
        step_deadline_ms=10_000, strict=True,
    ) as rb:  # fmt: skip
        steps_of_a_run(rb, [])
        before = server.cpu()
        for _ in range(runs):
            steps_of_a_run(rb, taken)
        used = server.cpu() - before
    return row("evaluate", len(taken), used, taken)


def steps_of_a_run(rb: ReasonBlocks, taken: list[float]) -> None:
    """Take the steps of a run, and note the seconds of those that the server evaluates: all but the first."""
    with rb.session(task="Fix the failing tests of the till.", model="some-model") as session:
        completed = None
        for number in range(STEPS):
            begun = time.perf_counter()
            decision = session.begin_step(StepInput(completed=completed, default_model="some-model"))
            if number:
                taken.append(time.perf_counter() - begun)
            session.end_step(decision, StepOutcome(model="some-model"))
            call = ToolCall(id=f"call-{number}", name="read_file", arguments={"path": f"src/module_{number}.py"})
            output = f"def function_{number}(value): return value + {number}\n" * 12
            thought = f"I look at module {number}, because its function is called by the failing test number {number}."
            result = ToolResult(call_id=call.id, output=output)
            completed = Step(thought=thought * 4, tool_calls=(call,), tool_results=(result,))


def ingest(server: Server, runs: int) -> dict[str, object]:
    """Measure batches of events as the client sends them: compressed, one after the other."""
    events, taken = list(many(runs)), list[float]()
    batches = [
        gzip.compress(json.dumps({"events": events[start : start + BATCH]}).encode())
        for start in range(0, len(events), BATCH)
    ]
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json", "Content-Encoding": "gzip"}
    before = server.cpu()
    for batch in batches:
        begun = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(f"{server.url}/monitor/events", batch, headers)) as answer:
            assert not json.load(answer)["refused"]
        taken.append(time.perf_counter() - begun)
    return row("ingest, per event", len(events), server.cpu() - before, [seconds / BATCH for seconds in taken])


def row(what: str, count: int, cpu: float, taken: list[float]) -> dict[str, object]:
    return {
        "what": what,
        "count": count,
        "server_cpu_ms": round(cpu / count * 1000, 3),
        "per_second_and_core": round(count / cpu),
        "median_ms": round(median(taken) * 1000, 3),
        "p95_ms": round(quantiles(taken, n=20)[-1] * 1000, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--runs", type=int, default=300, help=f"runs of {STEPS} steps (default 300)")
    parser.add_argument("--database-url", help="an empty database postgresql://...; by default, SQLite")
    given = parser.parse_args()
    with served(["--database-url", given.database_url] if given.database_url else []) as server:
        for measure in (evaluations, ingest):
            found = measure(server, given.runs)
            print(json.dumps(found) if given.json else "\n".join(f"{key:20}{value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
