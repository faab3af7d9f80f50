"""One steered run of the SDK: from the request of each call to its decision, and from the run's end to its outcome."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence, Set
from typing import TypeVar

from reasonblocks.adapters import HeldRun, call_key, same_model
from reasonblocks.session import SteeringSession
from reasonblocks.types import Step, StepDecision, StepInput, StepLogEntry, ToolResult

from ._calls import Call
from ._children import Children
from ._convert import TOOL_FAILED, completed_step, failed_calls, texts_of
from ._items import Item, Items
from ._request import steered, without_foreign_reasoning

MOST_AUTHORS = 4_096
"""Reasoning items of routed calls whose model is remembered."""
MOST_WAITING = 1_024
"""Tool calls under way whose start, end or failure is remembered."""


T = TypeVar("T")


class SteeredRun(HeldRun):
    """A run as its user sees it, and as the SDK's hooks tell of it."""

    def __init__(
        self, session: SteeringSession, *, routed: bool = False, server_managed: bool = False, resumed: bool = False
    ) -> None:
        super().__init__(session)
        self.agent_name: str | None = None
        """The agent whose turn it is; None until one is known."""
        self.call: Call | None = None
        self._server_managed = server_managed
        self._resumed_routed = resumed and routed
        self._answer: Step | None = None
        self._authors: OrderedDict[str, str] = OrderedDict()
        self._started: OrderedDict[str, float] = OrderedDict()
        self._ended: OrderedDict[str, ToolResult] = OrderedDict()
        self._failed: OrderedDict[str, bool] = OrderedDict()
        self._children: Children[SteeredRun] = Children()

    # ------------------------------------------------------------ what the user reads and says

    @property
    def step_log(self) -> list[StepLogEntry]:
        """Entry n is call n."""
        return self.session.step_log

    @property
    def final(self) -> StepLogEntry | None:
        """The last completed step, once the run is finished."""
        return self.session.final

    @property
    def outcome(self) -> str | None:
        """ "success" or "failure: ..."; None while the run is open, waits for an approval, or was cancelled."""
        return self.session.outcome

    @property
    def children(self) -> list[SteeredRun]:
        """Runs of agents that this run's agents called as tools, the newest 64."""
        return list(self._children)

    def snapshot(self) -> dict[str, object]:
        """Plain JSON to keep beside `RunState.to_json()`: give it to the run that goes on, as `snapshot`."""
        return dict(self.session.trace.snapshot())

    def mark_failure(self, reason: str) -> None:
        """The run failed, whatever it says itself."""
        self.session.mark_failure(reason)

    # ------------------------------------------------------------ one call

    @property
    def calls(self) -> int:
        """How many were decided."""
        return self.session.trace.state.calls

    async def decide(self, items: Sequence[Item], *, agent_name: str | None, own_model: str) -> Call | None:
        """What the next call gets; None after a fault, and while steering is off."""
        with self.session.guard("deciding a call"):
            if self.call is not None:
                self.call.catch_up(items)
            done = self._completed(items) if self.calls else None
            await self._settle(done)
            given = StepInput(
                key=call_key(self.session.trace.state), completed=done, default_model=own_model, agent_name=agent_name
            )
            decision = await self.session.abegin_step(given)
            self.call = Call(self, decision, own_model)
            self._started.clear()
            self._ended.clear()
            return self.call
        return None

    def say(
        self, instructions: str | None, items: Items, decision: StepDecision, *, server_managed: bool = False
    ) -> tuple[str | None, Items]:
        """The request with its guidance: never a message of its own where the server would keep it."""
        tail = decision.placement == "tail" and not (server_managed or self._server_managed)
        with self.session.guard("placing guidance"):
            return steered(instructions, items, decision, tail=tail)
        return instructions, items

    def fit(self, items: str | Items, model: str, own_model: str) -> str | Items:
        """The input as this model takes it: without what other models alone can read."""
        routed = bool(self._authors) or not same_model(model, own_model)
        if isinstance(items, str) or not (routed or self._resumed_routed):
            return items
        with self.session.guard("leaving out other models' reasoning"):
            return without_foreign_reasoning(items, self._is_foreign(model, own_model))
        return items

    def heard(self, answer: Step, reasoning: Sequence[str], call: Call) -> None:
        """A call was answered: what it said is known without reading it again."""
        self._answer = answer
        if not same_model(call.model, call.own_model):
            for one in reasoning:
                _keep(self._authors, one, call.model, MOST_AUTHORS)

    def _completed(self, items: Sequence[Item]) -> Step:
        return completed_step(items, self._answer, self._ended, self._failed)

    def _is_foreign(self, model: str, own_model: str) -> Callable[[str], bool]:
        unknown = "" if self._resumed_routed else own_model  # what another process heard may be anyone's
        return lambda one: not same_model(self._authors.get(one, unknown), model)

    # ------------------------------------------------------------ tools, as the SDK's hooks tell of them

    def tool_started(self, call_id: str) -> None:
        _keep(self._started, call_id, time.perf_counter(), MOST_WAITING)

    def tool_ended(self, call_id: str, result: object) -> None:
        """A result as the tool gave it; what the model reads of it, where it does, stands in the next request."""
        started = self._started.get(call_id)
        took = None if started is None else round((time.perf_counter() - started) * 1000, 3)
        text = texts_of(result) or ("" if isinstance(result, (list, dict)) else str(result))
        _keep(self._ended, call_id, ToolResult(call_id=call_id, name="", output=text, duration_ms=took), MOST_WAITING)

    def tool_failed(self, call_id: str) -> None:
        _keep(self._failed, call_id, True, MOST_WAITING)

    def child(self, call_id: str, make: Callable[[], SteeredRun]) -> SteeredRun:
        """The run of the agent that a tool call has called; made when that agent makes its first call."""
        return self._children.of_call(call_id, make)

    def within(self, items: Sequence[Item], make: Callable[[str | None], SteeredRun]) -> SteeredRun:
        """The same where no hook has told of the tool call: known by the request, `make` gets the id if it is sure."""
        waits_for = self.call.waits_for if self.call else ()
        only = waits_for[0] if len(waits_for) == 1 else None
        return self._children.of_request(items, lambda: make(only))

    def holds(self, run: SteeredRun) -> bool:
        """Whether it is this run, or one within it."""
        return run is self or any(child.holds(run) for child in self._children)

    # ------------------------------------------------------------ the run's end

    async def ended(self, items: Sequence[Item] = ()) -> None:
        """The run is done; `items` are those that it made, for the results of the last step."""
        last = self._last_step(items)
        await self._settle(last)
        await self.session.afinish(completed=last)

    async def failed(self, error: Exception) -> None:
        """The run ends with this error, and so do the runs within it."""
        for run in self._open():
            run.cut_off(error)
            await run.session.afinish(f"failure: {type(error).__name__}", completed=run._last_step(()))

    def ended_sync(self, items: Sequence[Item] = ()) -> None:
        """`ended`, where no event loop runs."""
        last = self._last_step(items)
        for run in self._open()[:-1]:
            run.session.finish(run._outcome(failed_calls(last)), completed=run._last_step(()))
        self.session.finish(completed=last)

    def failed_sync(self, error: Exception) -> None:
        """`failed`, where no event loop runs."""
        for run in self._open():
            run.cut_off(error)
            run.session.finish(f"failure: {type(error).__name__}", completed=run._last_step(()))

    def cut_off(self, error: BaseException) -> None:
        """The entry of a call under way keeps what ended it. A cancelled run stays open."""
        if self.call is not None:
            self.call.failed(error)

    async def child_ended(self, call_id: str, result: object) -> None:
        """The agent that a tool call has called is done; the SDK's own text says that it failed."""
        child = self._children.get(call_id)
        if child is not None:
            failed = isinstance(result, str) and result.startswith(TOOL_FAILED)
            if child.call is not None and not failed:
                child.call.catch_up([{"role": "assistant", "content": result}])
            await child._ended_as_tool({call_id} if failed else frozenset())

    async def _settle(self, done: Step | None) -> None:
        """A step that is done has no tool under way, whose agents' ends no hook may have told of."""
        for child in self._children:
            await child._ended_as_tool(failed_calls(done))

    async def _ended_as_tool(self, failed: Set[str]) -> None:
        for run in self._open():
            await run.session.afinish(run._outcome(failed), completed=run._last_step(()))

    def _outcome(self, failed: Set[str]) -> str:
        """Of a run that is done, as one of an agent in a tool if its tool call is one of those that failed."""
        error = self.call.error if self.call and not self.call.answered else None
        return f"failure: {error or 'unknown'}" if error or self.session.run.parent_call_id in failed else "success"

    def pause(self) -> None:
        """It waits for an approval, and so do the runs within it."""
        for run in self._open():
            run.session.pause()

    def _open(self) -> list[SteeredRun]:
        """Itself and the runs within it, those first, that are not over."""
        within = [run for child in self._children for run in child._open()]
        return within if self.over else [*within, self]

    def _last_step(self, items: Sequence[Item]) -> Step | None:
        """The last step, with what came back; None where the last call was not answered: it is judged already."""
        if self.session.trace.state.pending is None:
            return None
        with self.session.guard("reading the last step"):
            return self._completed(items)
        return None


def _keep(held: OrderedDict[str, T], key: str, value: T, most: int) -> None:
    held[key] = value
    while len(held) > most:
        held.popitem(last=False)
