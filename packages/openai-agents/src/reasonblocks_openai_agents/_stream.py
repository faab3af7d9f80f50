"""Follows a streamed run of the SDK to its end, through its second look if it has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from agents import Agent, AgentUpdatedStreamEvent, MaxTurnsExceeded, RunResultStreaming, RunState
from agents.stream_events import StreamEvent

from reasonblocks.adapters import adrive

if TYPE_CHECKING:
    from ._run import Begun


class Part(RunResultStreaming):
    """One streamed part of a run, whose events wait for the SDK's own loop, not for the whole run.

    It shares the attributes of the SDK's result, which that loop fills.
    """

    __slots__ = ("_loop", "_result")

    def __init__(self, result: RunResultStreaming) -> None:
        self._result = result  # kept: a collected result would take the agent out of the shared attributes
        self._loop = result.run_loop_task
        self.__dict__ = result.__dict__

    def __del__(self) -> None:
        """Leave the shared agent to the result."""

    @property
    def run_loop_task(self) -> asyncio.Task[Any] | None:  # type: ignore[override]  # an attribute of the SDK's
        return self._loop

    def events(self) -> AsyncGenerator[StreamEvent]:
        """Return the SDK's events; the attribute `stream_events` is ours."""
        return cast("AsyncGenerator[StreamEvent]", super().stream_events())

    @property
    def raises(self) -> bool:
        """Return True if its events end with an error. Only they report some guardrails."""
        self._check_errors()  # type: ignore[no-untyped-call]  # the SDK's
        return self._stored_exception is not None


class Whole(RunResultStreaming):
    """The caller's result of a streamed run, which shares the attributes of its newest part.

    The end of the first part is not the run's as long as a second part may follow: `is_complete` stays False, and
    `final_output` None.
    """

    __slots__ = ("_settled",)

    def __init__(self, first: RunResultStreaming, settled: asyncio.Event) -> None:
        self._settled = settled
        self.continue_as(first)

    def continue_as(self, part: RunResultStreaming) -> None:
        self.__dict__ = part.__dict__

    def __del__(self) -> None:
        """Leave the shared agent to the part."""

    @property
    def is_complete(self) -> bool:
        return self._settled.is_set() and bool(self.__dict__["is_complete"])

    @is_complete.setter
    def is_complete(self, value: bool) -> None:
        """Set by `cancel()`, which ends the run."""
        self.__dict__["is_complete"] = value
        self._settled.set()

    @property
    def final_output(self) -> Any:
        return self.__dict__["final_output"] if self._settled.is_set() else None

    @final_output.setter
    def final_output(self, value: Any) -> None:
        self.__dict__["final_output"] = value


class Stream:
    """A streamed run: one part, or two if it has a second look. It continues if nobody reads its events any more."""

    def __init__(self, begun: Begun) -> None:
        self._begun = begun
        first = begun.stream()
        self._parts = [Part(first)]
        self._settled = asyncio.Event()
        """Set once it is known whether there is a second part."""
        if not begun.run.session.wants_second_look:
            self._settled.set()
        self.result = Whole(first, self._settled)
        self._whole = asyncio.create_task(self._followed())
        self._whole.add_done_callback(self._ended)
        self._take_over(first)

    def _take_over(self, result: RunResultStreaming) -> None:
        self._begun.marks(result)
        result.run_loop_task = self._whole
        result.stream_events = self._events  # type: ignore[method-assign]

    async def _followed(self) -> Any:
        """Return the value of the SDK's loop, and finish the run."""
        try:
            value = await self._loop_ended()
            if (state := await self._second_look()) is not None:
                self._go_on(self._begun.stream(state))
                value = await self._loop_ended()
            self._settled.set()
        except BaseException as exc:
            await adrive(self._begun.raised(exc))
            raise
        if _out_of_turns(self.result):
            await adrive(self._begun.raised(MaxTurnsExceeded(f"Max turns ({self.result.max_turns}) exceeded")))
        else:
            await adrive(self._begun.returned(self.result))
        return value

    async def _second_look(self) -> RunState[Any, Any] | None:
        if not self._begun.run.session.wants_second_look or self._parts[0].raises:
            return None
        return await adrive(self._begun.second_look(self._parts[0]))

    async def _loop_ended(self) -> Any:
        loop = self._parts[-1].run_loop_task
        return None if loop is None else await loop

    def _go_on(self, second: RunResultStreaming) -> None:
        self._parts.append(Part(second))
        self._take_over(second)
        self.result.continue_as(second)
        self._settled.set()

    def _ended(self, whole: asyncio.Task[Any]) -> None:
        self._settled.set()
        if whole.cancelled() and (loop := self._parts[-1].run_loop_task) is not None:
            loop.cancel()

    async def _events(self) -> AsyncIterator[StreamEvent]:
        """Yield the events of all parts, until the run is over; finish it with the error that they raise."""
        try:
            async with self._awaited():
                agent: Agent[Any] | None = None
                for part in self._parts:  # the second is added before the first one's events are over
                    async with aclosing(part.events()) as events:
                        async for event in events:
                            if isinstance(event, AgentUpdatedStreamEvent):
                                if event.new_agent is agent:
                                    continue  # the second part begins with the agent of the first
                                agent = event.new_agent
                            yield event
                    await self._settled.wait()
        except Exception as exc:
            await adrive(self._begun.raised(exc))
            raise

    @asynccontextmanager
    async def _awaited(self) -> AsyncGenerator[None]:
        """Wait for the whole run at the end; raise its error if the events have raised none.

        A reader that is cancelled cancels the run, as in the SDK.
        """
        try:
            yield
        except asyncio.CancelledError:
            self._whole.cancel()
            raise
        finally:
            await asyncio.wait([self._whole])
            error = None if self._whole.cancelled() else self._whole.exception()
        if error is not None:
            raise error


def _out_of_turns(result: RunResultStreaming) -> bool:
    """Return True if the turns are used up: the SDK's loop then ends, and only the stream's reader sees the error."""
    most: int | None = result.max_turns
    return most is not None and result.current_turn > most and result.final_output is None
