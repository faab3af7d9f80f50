"""Observations and messages that the scenarios of the conformance suite share."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from reasonblocks.client import ReasonBlocks
from reasonblocks.events import Event, RunStart
from reasonblocks.render import FRAME
from reasonblocks.types import StepLogEntry

from . import _world as world
from ._scripted import RecordingSink
from .harness import Harness, Ran, Seen
from .script import Script

READING = (
    "compare each `StepInput` that the adapter passes to `begin_step`, above all `completed`, with the script's turns,"
    " and each `StepOutcome` that it passes to `end_step`"
)
DECISIONS = f"the adapter's decisions (left) differ from those of the hand-written loop (right): {READING}"
GUIDANCE = (
    "the guidance in the adapter's requests (left) differs from that of the hand-written loop (right): put"
    " decision.guidance and decision.standing_rules into the request unchanged (the harness: `Seen` holds the whole"
    " request)"
)
MISPLACED = (
    "these calls have guidance in another place than their entry's `placement` ('system': the system prompt, 'tail'"
    " and 'message': the last message), or have none although something was injected"
)
NO_GUIDANCE = "no request holds guidance: put decision.guidance into the request (the harness: into `Seen`)"
OUTCOME = "the run succeeded, so its outcome must be 'success': call `session.finish()` at the end of a run"
HARMED = (
    "a fault in steering must not change the agent's run: it must end without an error (`Ran.error`), with outcome"
    " 'success' and one request for each entry of the step log"
)


def decisions_of(log: Sequence[StepLogEntry]) -> list[tuple[object, ...]]:
    """Return the decision of each call, without fields that differ from run to run."""
    return [
        (
            entry.step,
            entry.fsm_state,
            entry.difficulty,
            entry.composite,
            entry.monitors_fired,
            entry.failure_type,
            entry.gate_decision,
            entry.skipped_reason,
            entry.injection_sources,
            entry.intervention_texts,
        )
        for entry in log
    ]


def guidance(text: str) -> str:
    """Return a part of a request from our frame to its end; "" if it has no frame."""
    at = text.find(FRAME)
    return "" if at < 0 else text[at:]


def guidance_of_parts(seen: Seen) -> list[str]:
    """Return the guidance of each part of a request that has some: the system prompt first, then the messages."""
    return [guidance(part) for part in (seen.system, *seen.texts) if FRAME in part]


def recording_client() -> tuple[ReasonBlocks, list[Event]]:
    """Return a client, and the list of events that its sink receives."""
    sink = RecordingSink()
    return world.client(sinks=[sink]), sink.events


def starts(client: ReasonBlocks, events: Sequence[Event]) -> list[RunStart]:
    """Close the client, so that its sink has every event, and return the start events."""
    client.close()
    return [event for event in events if isinstance(event, RunStart)]


def find_misplaced(ran: Ran) -> list[int]:
    """Return the calls whose guidance is not in the place that their entry names, or is missing.

    Calls with placement "context" are left out: their guidance remains in the history, where later requests show it.
    """
    found = []
    for entry, seen in zip(ran.log, ran.seen, strict=False):
        injected = bool(entry.injections)
        wanted = (injected and entry.placement == "system", injected and entry.placement != "system")
        there = (FRAME in seen.system, any(FRAME in text for text in seen.texts))
        if entry.placement != "context" and there != wanted:
            found.append(entry.step)
    return found


def evaluated_steps(client: Any) -> list[Any]:
    """Return the steps that the client's evaluator was called with, in order."""
    return [request.step for request in client._evaluator.asked]


def tasks(client: Any) -> set[str]:
    """Return the tasks that the steps were compared with."""
    return {request.task for request in client._evaluator.asked}


def is_unharmed(ran: Ran) -> bool:
    """Return whether the run succeeded with one request for each entry."""
    return ran.error is None and ran.outcome == "success" and len(ran.seen) == len(ran.log)


def by_attempt(special: dict[int, float], otherwise: float) -> Callable[[Any], float]:
    """Return a scorer with the difficulty of some of a looping script's attempts, and of all other steps."""

    def scorer(step: Any) -> float:
        attempt = step.tool_calls[0].arguments["attempt"] if step.tool_calls else -1
        return special.get(attempt, otherwise)

    return scorer


async def ticks(harness: Harness, client: ReasonBlocks, script: Script) -> list[float]:
    """Return the times, by `time.perf_counter()`, at which another task of the loop ran during a run."""
    task = asyncio.ensure_future(harness.arun(client, script))
    times = []
    while not task.done():
        await asyncio.sleep(0.001)
        times.append(time.perf_counter())
    await task
    return times


def seconds(step: Callable[[int], None], calls: range) -> float:
    """Return the median time of a call, in seconds."""
    times = []
    for call in calls:
        started = time.perf_counter()
        step(call)
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


@contextmanager
def threads_started() -> Iterator[list[threading.Thread]]:
    """Collect every thread that is started within the block, ended ones included."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    with mock.patch.object(threading.Thread, "start", counted):
        yield started


def held_bytes(step: Callable[[int], None], calls: range) -> int:
    """Return the bytes that these calls allocated and did not free."""
    tracemalloc.start()
    try:
        for call in calls:
            step(call)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
