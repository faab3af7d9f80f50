"""Sends evaluations or events to a server from a separate process, and prints the times as JSON.

It uses HTTP/1.1 over plain sockets, because a client library would need more time than the server.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import urlsplit

WORDS = (
    "the parser fails on line number because test expects date value read file error check assertion module import "
    "fixture clock zone again result returned none while loop index missing key path run build change small"
).split()
THOUGHT_WORDS, OUTPUT_WORDS = 100, 150
BATCH = 64
"""Events of one request, as the client of this library sends them."""
STEPS_A_RUN = 18


def text(random: Random, words: int) -> str:
    return " ".join(random.choices(WORDS, k=words))


@dataclass(slots=True, kw_only=True)
class Connection:
    """A connection that is kept open."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: str

    @classmethod
    async def to(cls, url: str, key: str) -> Connection:
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = f"Host: {address.netloc}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        return cls(reader=reader, writer=writer, head=head)

    async def post(self, path: str, body: bytes, headers: str = "") -> tuple[int, bytes]:
        """Send a request, and return the status and the body of its answer."""
        request = f"POST {path} HTTP/1.1\r\n{self.head}{headers}Content-Length: {len(body)}\r\n\r\n"
        self.writer.write(request.encode() + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
        return int(lines[0].split(" ")[1]), await self.reader.readexactly(length)

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def evaluate(url: str, key: str, runs: int, seconds: float) -> dict[str, Any]:
    """Evaluate the steps of several runs at once, and return the times of all requests."""
    connections = [await Connection.to(url, key) for _ in range(runs)]
    ends = time.perf_counter() + seconds
    started = time.perf_counter()
    found = await asyncio.gather(*(evaluate_run(one, number, ends) for number, one in enumerate(connections)))
    took = time.perf_counter() - started
    for connection in connections:
        await connection.close()
    times = sorted(taken for times in found for taken in times)
    return {
        "requests": len(times),
        "per_second": len(times) / took,
        "p50_ms": 1000 * times[len(times) // 2],
        "p95_ms": 1000 * times[int(len(times) * 0.95)],
    }


async def evaluate_run(connection: Connection, number: int, ends: float) -> list[float]:
    times: list[float] = []
    random, step, memory = Random(number), 0, None
    while time.perf_counter() < ends or not times:
        body = {
            "run_id": f"run-{number}-{len(times) - step}",
            "task": "Fix the failing tests.",
            "from_step": step,
            "steps": [made_step(random)],
            "injected": [],
            "memory": memory,
        }
        sent = json.dumps(body).encode()
        started = time.perf_counter()
        status, answer = await connection.post("/v1/monitors/evaluate", sent)
        times.append(time.perf_counter() - started)
        if status != 200:
            raise RuntimeError(f"HTTP {status}: {answer[:200]!r}")
        found = json.loads(answer)
        if found["partial"]:
            raise RuntimeError("the server did not open its own memory")
        step, memory = (0, None) if step + 1 == STEPS_A_RUN else (step + 1, found["memory"])
    return times


def made_step(random: Random) -> dict[str, Any]:
    call = {
        "id": "c",
        "name": random.choice(("run_tests", "read_file", "edit")),
        "arguments": {"path": text(random, 2)},
    }
    result = {"call_id": "c", "name": call["name"], "output": text(random, OUTPUT_WORDS)}
    return {"thought": text(random, THOUGHT_WORDS), "tool_calls": [call], "tool_results": [result]}


async def ingest(url: str, key: str, clients: int, events: int) -> dict[str, Any]:
    """Send events in batches from several clients, and return the rate of the acknowledged ones."""
    batches = list(batches_of(events))
    connections = [await Connection.to(url, key) for _ in range(clients)]
    started = time.perf_counter()
    accepted = await asyncio.gather(
        *(send(connection, batches[number::clients]) for number, connection in enumerate(connections))
    )
    took = time.perf_counter() - started
    for connection in connections:
        await connection.close()
    return {"events": events, "accepted": sum(accepted), "per_second": sum(accepted) / took, "seconds": took}


async def send(connection: Connection, batches: list[bytes]) -> int:
    accepted = 0
    for batch in batches:
        status, answer = await connection.post("/v1/monitor/events", batch, "Content-Encoding: gzip\r\n")
        if status != 200:
            raise RuntimeError(f"HTTP {status}: {answer[:200]!r}")
        accepted += json.loads(answer)["accepted"]
    return accepted


def batches_of(events: int) -> Iterator[bytes]:
    """Yield packed batches of the events of made-up runs: a start, steps of 2 KB, and an end."""
    made = made_events()
    for start in range(0, events, BATCH):
        batch = [next(made) for _ in range(min(BATCH, events - start))]
        yield gzip.compress(json.dumps({"events": batch}).encode(), 6)


def made_events() -> Iterator[dict[str, Any]]:
    random, run, now = Random(0), 0, time.time()
    while True:
        run_id = f"load-{run}-{random.randrange(10**9)}"
        common = {"run_id": run_id, "timestamp": now}
        yield {"event": "run_start", "agent_name": "agent", "task": text(random, 8), "model": "m", **common}
        for step in range(STEPS_A_RUN):
            yield {"event": "step", "step_index": step, "metadata": {"fsm_state": "NORMAL", "difficulty": 0.3},
                   "thought": text(random, THOUGHT_WORDS), "action": "run_tests", "action_input": "{}",
                   "observation": text(random, OUTPUT_WORDS), "tokens": 900, "scores": {"semantic_loop": 0.1},
                   **common}  # fmt: skip
        yield {"event": "run_finish", "outcome": "success", **common}
        run += 1


def main() -> None:
    what, url, key, count, size = sys.argv[1:]
    work = (
        evaluate(url, key, int(count), float(size)) if what == "evaluate" else ingest(url, key, int(count), int(size))
    )
    print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main()
