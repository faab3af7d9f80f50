"""Runs a lifecycle that is written once, in threads and on event loops: the two drivers, and the work they wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeAlias, TypeVar

from .bounded_call import BoundedCall

T = TypeVar("T")


class Wait(Protocol):
    """Work that a flow waits for, with one method for threads and one for event loops."""

    def answer(self) -> Any: ...
    async def aanswer(self) -> Any: ...


SteeringFlow: TypeAlias = Generator[Wait, Any, T]
"""A lifecycle, written once for threads and event loops: it yields what it waits for. `drive` or `adrive` runs it."""


@dataclass(frozen=True, slots=True)
class InThread:
    """Wait for `work`, which may block: an event loop runs it in a thread, because it may load a package or a file."""

    work: Callable[[], Any]

    def answer(self) -> Any:
        return self.work()

    async def aanswer(self) -> Any:
        import asyncio  # already imported by the awaiting code

        return await asyncio.to_thread(self.work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Wait for `work`: at most `seconds`, in a thread, if it is `bounded`; otherwise in place."""

    name: str
    work: Callable[[], Any]
    bounded: BoundedCall | None
    awork: Callable[[], Coroutine[Any, Any, Any]] | None = None
    """The work as a coroutine, for event loops."""
    seconds: float = inf
    fallback: tuple[Any, ...] = ()
    """The answer, in a tuple, if only this call fails; without a fallback, a failure faults the step."""

    def answer(self) -> Any:
        return self.work() if self.bounded is None else self.bounded.call(self.work, self.seconds)

    async def aanswer(self) -> Any:
        if self.bounded is None:
            return self.work() if self.awork is None else await self.awork()
        if self.awork is None:
            return await self.bounded.acall(self.work, self.seconds)
        return await self.bounded.wait_for(self.awork, self.seconds)


def ms_since(started: float) -> float:
    """Return the milliseconds since a `time.perf_counter()`."""
    return round((time.perf_counter() - started) * 1000, 3)


def drive(flow: SteeringFlow[T]) -> T:
    """Run a flow to its end in this thread; return its result, or raise what it raises."""
    resume: Callable[[Any], Wait] = flow.send
    given: Any = None
    try:
        while True:
            wait = resume(given)
            try:
                resume, given = flow.send, wait.answer()
            except BaseException as exc:  # noqa: BLE001 - the flow handles it, or raises it again
                resume, given = flow.throw, exc
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        del given  # an error and this frame would keep each other alive


async def adrive(flow: SteeringFlow[T]) -> T:
    """Run a flow to its end without blocking the event loop; return its result, or raise what it raises."""
    resume: Callable[[Any], Wait] = flow.send
    given: Any = None
    try:
        while True:
            wait = resume(given)
            try:
                resume, given = flow.send, await wait.aanswer()
            except BaseException as exc:  # noqa: BLE001 - the flow handles it, or raises it again
                resume, given = flow.throw, exc
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        del given  # an error and this frame would keep each other alive
