"""Ingests one run's events from a process of its own: `python other_process.py URL SEED BATCHES`.

It writes "ready", waits for a line, and then writes "ok" after each batch that the storage has acknowledged. The steps
are in an order of the seed, with `SEED` 0 in their own and one a batch.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

from reasonblocks_server.storage import Storage

SIZE = 20


def batches(seed: int, number: int) -> Iterator[list[dict[str, Any]]]:
    if not seed:
        yield from ([_step(index)] for index in range(number))
        return
    chance = random.Random(seed)
    events = [_step(index) for index in range(number * SIZE)]
    chance.shuffle(events)
    yield from (events[at : at + SIZE] for at in range(0, len(events), SIZE))


def _step(index: int) -> dict[str, Any]:
    return {"event": "step", "run_id": "r", "step_index": index, "timestamp": 1.0, "tokens": 1}


def main(url: str, seed: str, number: str) -> None:
    storage = Storage.open(url)
    print("ready", flush=True)
    sys.stdin.readline()
    for batch in batches(int(seed), int(number)):
        answer = storage.runs.ingest("o", batch, now=1.0)
        print(f"ok {answer.accepted}", flush=True)
    storage.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
