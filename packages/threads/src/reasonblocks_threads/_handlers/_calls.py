"""Runs the caller's code for a work with a deadline, and submits what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from reasonblocks._threads import Workers

from .._errors import Conflict, Refused, ThreadsError
from .._phases import Addition, Trigger
from .._values import SYSTEM, Command, Expect, ExpectVersion, ExpectWork, Thread, Work

if TYPE_CHECKING:
    from .._engine import Engine
    from .._ports import Writing

T = TypeVar("T")
Effects = Callable[["Writing", Thread], None]

SLICE_S = 0.05
"""Seconds between two looks at the engine's clock while a call runs."""
ERROR_CHARS = 500

_workers = Workers()


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What came of a call: a value, the error that it raised, or neither if its deadline passed."""

    value: T | None = None
    error: BaseException | None = None
    late: Future[T] | None = None
    """The call that still runs, if its deadline passed."""


def bounded(call: Callable[[], T], source: str, *, clock: Callable[[], float], until: float) -> Outcome[T]:
    """Run a call in a daemon thread until the clock reaches `until`, then abandon it. Raises nothing of the call.

    The seconds are also counted by a clock that nobody sets back.
    """
    future = _workers.submit(call, source)
    ends = monotonic() + until - clock()
    while not wait([future], timeout=min(SLICE_S, max(0.0, ends - monotonic()))).done:
        if monotonic() >= ends or clock() >= until:
            return Outcome(late=future)
    error = future.exception()
    return Outcome(error=error) if error is not None else Outcome(value=future.result())


def described(error: BaseException) -> str:
    """Return an error as text without secrets."""
    return masked(f"{type(error).__name__}: {error}"[:ERROR_CHARS])


def masked(text: str) -> str:
    """Return a text without secrets."""
    from reasonblocks.learning._mask import LONGEST, whole_words, without_secrets

    return without_secrets(whole_words(text, LONGEST))


def head(engine: Engine, thread_id: str) -> Thread | None:
    """Return a thread as it is now."""
    with engine.store.read() as reading:
        return reading.head(thread_id)


def of_work(
    engine: Engine, work: Work, trigger: Trigger | Addition, data: Mapping[str, object], *, attempt: bool = False
) -> Command:
    """Return the system's command about the thread of a leased work; each attempt may have one of its own."""
    name = f"work:{work.id}:{trigger.value}" + (f":{work.attempts}" if attempt else "")
    return Command(
        id=name,
        thread_id=work.thread_id,
        trigger=trigger,
        expect=ExpectWork(work.id, lease(work)),
        actor=SYSTEM,
        at=engine.clock(),
        data=data,
    )


def lease(work: Work) -> str:
    """Return the token of a work's lease: a handler is given nothing else."""
    if work.lease is None:
        raise ValueError(f"the work {work.id!r} is not leased")
    return work.lease


def command(
    engine: Engine, name: str, thread: Thread, trigger: Trigger | Addition, expect: Expect, data: Mapping[str, object]
) -> Command:
    """Return a command of the system about any thread."""
    return Command(
        id=name, thread_id=thread.id, trigger=trigger, expect=expect, actor=SYSTEM, at=engine.clock(), data=data
    )


def submitted(engine: Engine, wanted: Command, effects: Effects | None = None) -> bool:
    """Submit a command. Returns False if its thread has moved on; other errors are raised."""
    try:
        engine.submit(wanted, effects=effects)
    except Conflict:
        return False
    except Refused:
        now = head(engine, wanted.thread_id)
        if now is not None and now.unreadable:
            raise
        return False
    return True


def report_late(engine: Engine, thread_id: str, name: str, what: str, detail: str, effects: Effects | None = None) -> None:
    """Note a result that came after its thread had moved on. It changes nothing else, and is lost if that fails."""
    with suppress(ThreadsError):
        for _ in range(5):
            thread = head(engine, thread_id)
            if thread is None:
                return
            data = {"what": what, "detail": detail}
            if submitted(
                engine,
                command(engine, name, thread, Addition.LATE_REPORT, ExpectVersion(thread.version), data),
                effects,
            ):
                return
