"""What the scenarios of the conformance suite look at."""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from .._client import ReasonBlocks
from .._render import FRAME
from ..events import Event, RunStart
from ..types import StepLogEntry
from . import _world as world
from ._harness import Harness, Ran, Seen
from ._script import Script
from ._scripted import RecordingSink


def decided(log: Sequence[StepLogEntry]) -> list[tuple[object, ...]]:
    """What steering decided for each call, without what differs from run to run."""
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
    """What stands in a part of a request from our frame to its end."""
    at = text.find(FRAME)
    return "" if at < 0 else text[at:]


def read(seen: Seen) -> list[str]:
    """The guidance that a request holds, by its parts."""
    return [guidance(part) for part in (seen.system, *seen.texts) if FRAME in part]


def recorded() -> tuple[ReasonBlocks, list[Event]]:
    """Return a client, and the list of events that its sink receives."""
    sink = RecordingSink()
    return world.client(sinks=[sink]), sink.events


def starts(client: ReasonBlocks, events: Sequence[Event]) -> list[RunStart]:
    """Return the runs that began. Closes the client, so that its sink has every event."""
    client.close()
    return [event for event in events if isinstance(event, RunStart)]


def misplaced(ran: Ran) -> list[int]:
    """Return the calls whose guidance is not where their entry says, or is missing although something was injected.

    Guidance that a framework keeps may be anywhere from its call on.
    """
    found = []
    for entry, seen in zip(ran.log, ran.seen, strict=False):
        told = bool(entry.injections)
        wanted = (told and entry.placement == "system", told and entry.placement == "tail")
        there = (FRAME in seen.system, any(FRAME in text for text in seen.texts))
        if entry.placement != "context" and there != wanted:
            found.append(entry.step)
    return found


def judged(client: Any) -> list[Any]:
    return [request.step for request in client._evaluator.asked]


def tasks(client: Any) -> set[str]:
    """What the steps were compared with."""
    return {request.task for request in client._evaluator.asked}


def unharmed(ran: Ran) -> bool:
    return ran.error is None and ran.outcome == "success" and len(ran.seen) == len(ran.log)


def by_attempt(special: dict[int, float], otherwise: float) -> Callable[[Any], float]:
    def scorer(step: Any) -> float:
        attempt = step.tool_calls[0].arguments["attempt"] if step.tool_calls else -1
        return special.get(attempt, otherwise)

    return scorer


async def longest_gap(harness: Harness, client: ReasonBlocks, script: Script) -> float:
    """The longest time that another task of the loop had to wait while a run went on."""
    await harness.arun(world.client(), script)  # warm: imports and first calls are measured elsewhere
    task = asyncio.ensure_future(harness.arun(client, script))
    longest, before = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    await task
    return longest


def seconds(step: Callable[[int], None], calls: range) -> float:
    """The median of a call."""
    times = []
    for call in calls:
        started = time.perf_counter()
        step(call)
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


@contextmanager
def threads_started() -> Iterator[list[threading.Thread]]:
    """Collect every thread started within the block, also one that has ended since."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    with mock.patch.object(threading.Thread, "start", counted):
        yield started


def kept(step: Callable[[int], None], calls: range) -> int:
    """Bytes that are still held after these calls."""
    tracemalloc.start()
    try:
        for call in calls:
            step(call)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
