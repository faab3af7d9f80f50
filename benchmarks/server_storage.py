"""Measures the storage in SQLite and PostgreSQL: bytes of a step with all indexes, and events per second."""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text

from reasonblocks import ReasonBlocks, SteeringSession, Step, StepInput, StepOutcome, ToolCall, ToolResult
from reasonblocks.events import Event
from reasonblocks.types import Usage
from reasonblocks_server.storage import Storage

STEPS = 18
"""Steps of a run: the mean of recorded runs."""
WORDS = 112
"""Words of a thought and of a tool's output, so that an event has about 2.0 KB, as those of recorded runs."""
BATCH = 64
"""Events of a request, as the client sends them."""
TEMPLATES = 20
"""Generated runs. They are stored repeatedly, each time with other ids."""


class Collected:
    """A sink that keeps the events as the client would send them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: Event) -> None:
        self.events.append(event.as_dict())

    def close(self) -> None:
        pass


def run_events(seed: int) -> list[dict[str, Any]]:
    """Return the events of one run of scripted steps, with the decisions of a real client."""
    sink, chance = Collected(), random.Random(seed)
    words = [f"{chance.choice('bcdfgklmnprst')}{chance.randrange(36**3):x}" for _ in range(4000)]
    rb = ReasonBlocks(base_url="", sinks=[sink], e_traces_enabled=False)
    with rb, rb.session(agent_name=f"agent-{seed % 5}", task=" ".join(words[:20]), model="some-model") as session:
        take_steps(session, chance, words)
    return sink.events


def take_steps(session: SteeringSession, chance: random.Random, words: Sequence[str]) -> None:
    completed = None
    for number in range(STEPS - 1):  # the last step is that of the run's end
        decision = session.begin_step(StepInput(completed=completed, default_model="some-model"))
        thought, output = (" ".join(chance.sample(words, WORDS)) for _ in range(2))
        usage = Usage(input=2000 + 300 * number, output=120)
        call = ToolCall(id=f"call-{number}", name="read_file", arguments={"path": f"src/{chance.choice(words)}.py"})
        session.end_step(decision, StepOutcome(model="some-model", text=thought, tool_calls=(call,), usage=usage))
        completed = Step(
            thought=thought, tool_calls=(call,), tool_results=(ToolResult(call_id=call.id, output=output),)
        )


def many(runs: int) -> Iterator[dict[str, Any]]:
    """Yield the events of so many runs."""
    made = [run_events(seed) for seed in range(TEMPLATES)]
    for number in range(runs):
        run_id = f"{random.Random(number).getrandbits(128):032x}"
        for event in made[number % TEMPLATES]:
            yield {**event, "run_id": run_id}


def size_of(url: str) -> int:
    """Return the bytes of the database on its disk."""
    engine = create_engine(
        make_url(url).set(drivername=url.partition(":")[0].replace("postgresql", "postgresql+psycopg"))
    )
    try:
        with engine.connect() as connection:
            if url.startswith("postgresql"):
                return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)")).all()
            pages, size = (
                connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("page_count", "page_size")
            )
            return int(pages * size)
    finally:
        engine.dispose()


def measure(name: str, url: str, runs: int) -> dict[str, object]:
    storage = Storage.open(url)
    storage.migrate()
    empty, events, taken = size_of(url), list(many(runs)), 0.0
    for start in range(0, len(events), BATCH):
        begun = time.perf_counter()
        stored = storage.runs.ingest("default", events[start : start + BATCH], now=time.time())
        taken += time.perf_counter() - begun
        assert not stored.refused, stored.refused
    storage.close()
    sent = [len(json.dumps(event, ensure_ascii=False)) for event in events if event["event"] == "step"]
    return {
        "database": name,
        "runs": runs,
        "steps": len(sent),
        "step_event_bytes": round(sum(sent) / len(sent)),
        "bytes_per_step": round((size_of(url) - empty) / len(sent)),
        "bytes_per_run": round((size_of(url) - empty) / runs),
        "events_per_second": round(len(events) / taken),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--runs", type=int, default=1000, help="runs to store (default 1000)")
    parser.add_argument("--database-url", help="an empty database postgresql://..., beside SQLite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = {"SQLite": f"sqlite:///{Path(folder) / 'server.db'}"}
        if given.database_url is not None:
            urls["PostgreSQL"] = given.database_url
        for name, url in urls.items():
            row = measure(name, url, given.runs)
            print(json.dumps(row) if given.json else "\n".join(f"{key:20}{value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
