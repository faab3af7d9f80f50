"""Runs the caller's code for a work: in a daemon thread, until a deadline, and without its errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from reasonblocks.concurrency.workers import Workers

from ..errors import ThreadsError
from ..phases import Addition
from ..values import SYSTEM, Command, ExpectVersion, Thread, Work

if TYPE_CHECKING:
    from ..engine import Effects, Engine

T = TypeVar("T")

SLICE_S = 0.05
"""Seconds between two looks at the engine's clock while a call runs."""
CONTAINED = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""Errors that would end the process: here they end the call. Others of their kind (a test runner's) are passed on."""

_workers = Workers()


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The outcome of a call: a value, the error that it raised, or a call that still ran at its deadline."""

    value: T | None = None
    error: Exception | None = None
    late: Future[T] | None = None


def call_within(call: Callable[[], T], source: str, *, clock: Callable[[], float], until: float) -> Outcome[T]:
    """Run a call in a daemon thread until the clock reaches `until`, then abandon it. Its errors are not raised.

    The seconds also count if the clock is set back.
    """
    future = _workers.submit(call, source)
    ends = monotonic() + until - clock()
    while not _is_done(future, min(SLICE_S, max(0.0, ends - monotonic()))):
        if monotonic() >= ends or clock() >= until:
            return Outcome(late=future)
    try:
        return Outcome(value=future.result())
    except Exception as exc:  # noqa: BLE001 - the edge to the caller's code
        cause = exc.__cause__
        if cause is not None and not _is_contained(cause):
            raise cause from None
        return Outcome(error=exc)


def _is_done(future: Future[T], seconds: float) -> bool:
    """Wait for a call. Not `concurrent.futures.wait`: an interrupt of that locks the future for ever."""
    try:
        future.exception(seconds)
    except FutureTimeout:
        return False
    return True


def _is_contained(error: BaseException) -> bool:
    """Return True for an error that ends the call only; asyncio's `CancelledError` too, without importing asyncio."""
    return isinstance(error, (Exception, *CONTAINED)) or type(error).__module__.startswith("asyncio.")


def deadline(engine: Engine, work: Work, seconds: float) -> float:
    """Return when a call for this work has to end: after some seconds, and before its lease does."""
    ends = engine.now() + seconds
    return ends if work.leased_until is None else min(ends, work.leased_until)


def report_late(
    engine: Engine, thread_id: str, name: str, what: str, detail: str, effects: Effects | None = None
) -> None:
    """Note a result that came after its thread had moved on. It moves nothing, and a failure to note it loses it."""

    def make(thread: Thread) -> Command:
        return Command(
            id=name, thread_id=thread_id, trigger=Addition.LATE_REPORT, expect=ExpectVersion(version=thread.version),
            actor=SYSTEM, at=engine.now(), data={"what": what, "detail": detail},
        )  # fmt: skip

    with suppress(ThreadsError):
        engine.submit_latest(thread_id, make, effects=effects)
