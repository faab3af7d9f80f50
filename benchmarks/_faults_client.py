"""One agent's process of benchmarks/faults.py: steps of a run against a server, whose fault begins in its middle.

Reads its task as a line of JSON and writes its figures as another. Between them it writes the line "half", and waits
for a line: the server has its fault from then on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

from reasonblocks import ReasonBlocks, SteeringSession, StepInput, StepOutcome
from reasonblocks.backends.http import HttpSink
from reasonblocks.types import StepDecision
from reasonblocks_testing.script import long_script

WARM_STEPS = 10
"""Steps before the fault, which are not measured."""
TICK_SECONDS = 0.001
MARK = "logged: "
"""Begins each line of the log, unlike those of a traceback."""
STEPS_OF_A_RUN = 47
EVENTS_OF_A_RUN = STEPS_OF_A_RUN + 3
"""With a start, the final step, and a finish."""
QUEUE_SECONDS = 35.0
"""Seconds that a queue is waited for; the longest pause of the telemetry is 30 s."""


def half() -> None:
    """Let the parent switch the fault on."""
    print("half", flush=True)
    sys.stdin.readline()


class Run:
    """One steered run: a step's seconds, and its decision."""

    def __init__(self, rb: ReasonBlocks) -> None:
        self.session: SteeringSession = rb.session(task="Fix the failing tests in src/app.py.")
        self._turns = long_script().turns
        self.seconds: list[float] = []
        self.decisions: list[StepDecision] = []

    def next(self) -> tuple[StepInput, StepOutcome]:
        at = len(self.seconds)
        completed = self._turns[at - 1].step if at else None
        return StepInput(key=f"key-{at}", completed=completed, default_model="bench"), self._turns[at].outcome("bench")

    def step(self) -> None:
        given, outcome = self.next()
        started = time.perf_counter()
        decision = self.session.begin_step(given)
        self._took(started, decision, outcome)

    async def astep(self) -> None:
        given, outcome = self.next()
        started = time.perf_counter()
        decision = await self.session.abegin_step(given)
        self._took(started, decision, outcome)

    def _took(self, started: float, decision: StepDecision, outcome: StepOutcome) -> None:
        self.session.end_step(decision, outcome)
        self.seconds.append(time.perf_counter() - started)
        self.decisions.append(decision)

    def figures(self) -> dict[str, object]:
        """The figures of the steps after the warm ones."""
        seconds, decisions = self.seconds[WARM_STEPS:], self.decisions[WARM_STEPS:]
        return {
            "steps": len(seconds),
            "p50_ms": round(median(seconds) * 1e3, 2),
            "max_ms": round(max(seconds) * 1e3, 1),
            "gates": dict(Counter(str(decision.gate_decision) for decision in decisions)),
            "retrieved": sum(any(ids is not None for ids in decision.retrieved.values()) for decision in decisions),
            "unanswered": sum(any(ids is None for ids in decision.retrieved.values()) for decision in decisions),
        }


def steps(rb: ReasonBlocks, count: int) -> dict[str, object]:
    run = Run(rb)
    for at in range(WARM_STEPS + count):
        if at == WARM_STEPS:
            half()
        run.step()
    run.session.finish()
    return run.figures()


async def asteps(rb: ReasonBlocks, count: int) -> dict[str, object]:
    """The same on an event loop, with the longest time in which it did nothing else, and that of an idle loop."""
    run = Run(rb)
    for _ in range(WARM_STEPS):
        await run.astep()
    half()
    started = time.perf_counter()
    async with ticking() as gaps:
        for _ in range(count):
            await asyncio.sleep(2 * TICK_SECONDS)  # the agent's own work: the loop is free
            await run.astep()
    async with ticking() as idle:
        await asyncio.sleep(time.perf_counter() - started)
    await run.session.afinish()
    return {**run.figures(), "gap_ms": round(max(gaps) * 1e3, 1), "idle_gap_ms": round(max(idle) * 1e3, 1)}


@asynccontextmanager
async def ticking() -> AsyncIterator[list[float]]:
    """Wake every millisecond, and yield the list of the delays in seconds."""
    delays = [0.0]

    async def tick() -> None:
        while True:
            last = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            delays.append(time.perf_counter() - last - TICK_SECONDS)

    task = asyncio.create_task(tick())
    yield delays
    await asyncio.sleep(2 * TICK_SECONDS)
    task.cancel()


def events(url: str, key: str, count: int) -> tuple[ReasonBlocks, dict[str, object]]:
    """So many events for a server that is dead meanwhile, and how long they need once it is back."""
    rb = ReasonBlocks(sinks=[HttpSink(url, key)])
    seconds: list[float] = []
    for _ in range(count // EVENTS_OF_A_RUN):
        run = Run(rb)
        for _ in range(STEPS_OF_A_RUN):
            run.step()
        run.session.finish()
        seconds += run.seconds
    telemetry = rb._telemetry
    dropped = telemetry.dropped
    half()
    back = time.perf_counter()
    while not (delivered := telemetry.flush(QUEUE_SECONDS)) and time.perf_counter() < back + QUEUE_SECONDS:
        time.sleep(TICK_SECONDS)
    return rb, {
        "events": count,
        "p50_ms": round(median(seconds) * 1e3, 2),
        "kept": count - dropped,
        "dropped": dropped,
        "delivered": delivered,
        "delivery_s": round(time.perf_counter() - back, 2),
    }


def main() -> None:
    logging.basicConfig(format=f"{MARK}%(message)s", level=logging.WARNING)  # on stderr, read by the parent
    task = json.loads(sys.stdin.readline())
    if task["mode"] == "events":
        rb, figures = events(task["url"], task["key"], task["count"])
    else:
        rb = ReasonBlocks(**({"base_url": task["url"], "api_key": task["key"]} if task["url"] else {}))
        figures = steps(rb, task["count"]) if task["mode"] == "sync" else asyncio.run(asteps(rb, task["count"]))
    print(json.dumps({**figures, "ended": time.time()}), flush=True)


if __name__ == "__main__":
    main()
