"""Drives a lifecycle that is written once, in threads and on event loops: the two drivers, and a step under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from ..exceptions import Unavailable
from ..requests import Flow, Request
from ..types import StepDecision, TraceState
from ._answers import Answers

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


@dataclass(slots=True)
class _Question:
    """A request of the engine, with the backends that answer it."""

    request: Request[Any]
    answers: Answers

    def answer(self) -> Any:
        return self.answers.answer(self.request)

    async def aanswer(self) -> Any:
        return await self.answers.aanswer(self.request)


@dataclass(slots=True)
class StepInFlight:
    """A step that is being decided. `result` stays None if a fault ended it."""

    before: TraceState
    flow: Flow[tuple[TraceState, StepDecision]]
    answers: Answers
    started: float = field(default_factory=time.perf_counter)
    result: tuple[TraceState, StepDecision] | None = None
    over: bool = False

    def run(self) -> SteeringFlow[None]:
        """Run the engine's flow under the guard, and keep its result. A step is run once."""
        if self.over:
            return
        self.over = True
        with self.answers.faults.guard(lambda: self.answers.doing):
            self.result = yield from self._questions()

    def _questions(self) -> SteeringFlow[tuple[TraceState, StepDecision]]:
        resume: Callable[[], Request[Any]] = partial(next, self.flow)
        while True:
            try:
                request = resume()
            except StopIteration as done:
                result: tuple[TraceState, StepDecision] = done.value
                return result
            try:
                given = yield _Question(request, self.answers)
            except Unavailable as exc:
                resume = partial(self.flow.throw, exc)
            else:
                resume = partial(self.flow.send, given)


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
