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
from collections.abc import Iterator
from statistics import median

from reasonblocks import ReasonBlocks, SteeringSession, StepInput, StepOutcome
from reasonblocks.backends._http import HttpSink
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.testing._script import long_script
from reasonblocks.types import RunInfo, StepDecision

WARM_STEPS = 10
"""Steps before the fault, which are not measured."""
TICK_SECONDS = 0.001
EVENTS_OF_A_RUN = 100
QUEUE_SECONDS = 20.0
"""Seconds in which a queue is delivered to a server that is back."""


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
    """The same on an event loop, with the longest time in which it did nothing else."""
    run, gaps = Run(rb), [0.0]

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.perf_counter()
            gaps.append(now - last - TICK_SECONDS)
            last = now

    for _ in range(WARM_STEPS):
        await run.astep()
    half()
    ticking = asyncio.create_task(tick())
    for _ in range(count):
        await asyncio.sleep(2 * TICK_SECONDS)  # the agent's own work: the loop is free
        await run.astep()
    await asyncio.sleep(2 * TICK_SECONDS)
    ticking.cancel()
    await run.session.afinish()
    return {**run.figures(), "gap_ms": round(max(gaps) * 1e3, 1)}


def events(url: str, key: str, count: int) -> tuple[ReasonBlocks, dict[str, object]]:
    """So many events for a server that is dead meanwhile, and what it has when it is back."""
    rb = ReasonBlocks(sinks=[HttpSink(url, key)])
    telemetry = rb._telemetry  # its queue is the subject, and a run of 10,000 steps would take half a minute
    started = time.perf_counter()
    for event in many(count):
        telemetry.emit(event)
    seconds = time.perf_counter() - started
    kept = count - telemetry.dropped
    half()
    delivered = telemetry.flush(QUEUE_SECONDS)
    return rb, {
        "events": count,
        "us_per_event": round(seconds / count * 1e6, 1),
        "kept": kept,
        "dropped": telemetry.dropped,
        "delivered_after": delivered,
    }


def many(count: int) -> Iterator[Event]:
    """Events of runs with a start, 98 steps, and a finish each."""
    for number in range(count):
        run_id, at = f"run-{number // EVENTS_OF_A_RUN}", number % EVENTS_OF_A_RUN
        if at == 0:
            yield RunStart(run=RunInfo(run_id=run_id, framework="bench"), timestamp=0.0)
        elif at == EVENTS_OF_A_RUN - 1:
            yield RunFinish(run_id=run_id, outcome="success", timestamp=0.0)
        else:
            yield StepEvent(run_id=run_id, step_index=at - 1, timestamp=0.0, thought="x" * 400)


def main() -> None:
    logging.basicConfig(format="%(message)s", level=logging.WARNING)  # on stderr, where the parent counts the lines
    task = json.loads(sys.stdin.readline())
    if task["mode"] == "events":
        rb, figures = events(task["url"], task["key"], task["count"])
    else:
        rb = ReasonBlocks(**({"base_url": task["url"], "api_key": task["key"]} if task["url"] else {}))
        figures = steps(rb, task["count"]) if task["mode"] == "sync" else asyncio.run(asteps(rb, task["count"]))
    print(json.dumps({**figures, "ended": time.time()}), flush=True)


if __name__ == "__main__":
    main()
