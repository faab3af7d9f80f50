"""One steered run of the SDK: from the request of each call to its decision, and from the run's end to its outcome."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

from reasonblocks.adapters import HeldRun, same_model
from reasonblocks.session import SteeringSession
from reasonblocks.types import Step, StepDecision, StepInput, StepLogEntry, ToolResult

from ._calls import Call
from ._convert import TOOL_FAILED, Item, Items, completed_step, texts_of
from ._request import steered, without_foreign_reasoning

MOST_CHILDREN = 64
"""Runs of agents that this run's tools called; beyond, the oldest is forgotten here."""
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
        self._children: OrderedDict[str, SteeredRun] = OrderedDict()

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
        return list(self._children.values())

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
            given = StepInput(
                key=self._key(),
                completed=self._completed(items) if self.session.trace.state.calls else None,
                default_model=own_model,
                agent_name=agent_name,
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

    def _key(self) -> str:
        """The number of answers so far: a call that was never answered is the same call when it comes again."""
        state = self.session.trace.state
        return f"call-{state.calls - (state.calls > 0 and state.pending is None)}"

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
        if call_id not in self._children:
            _keep(self._children, call_id, make(), MOST_CHILDREN)
        return self._children[call_id]

    # ------------------------------------------------------------ the run's end

    async def ended(self, items: Sequence[Item] = ()) -> None:
        """The run is done; `items` are those that it made, for the results of the last step."""
        await self.session.afinish(completed=self._last_step(items))

    async def failed(self, error: Exception) -> None:
        """The run ends with this error, and so do the runs within it."""
        outcome = f"failure: {type(error).__name__}"
        for run in (*self._children.values(), self):
            if not run.over:
                run.cut_off(error)
                await run.session.afinish(outcome, completed=run._last_step(()))

    def ended_sync(self, items: Sequence[Item] = ()) -> None:
        """`ended`, where no event loop runs."""
        self.session.finish(completed=self._last_step(items))

    def failed_sync(self, error: Exception) -> None:
        """`failed`, where no event loop runs."""
        outcome = f"failure: {type(error).__name__}"
        for run in (*self._children.values(), self):
            if not run.over:
                run.cut_off(error)
                run.session.finish(outcome, completed=run._last_step(()))

    def cut_off(self, error: BaseException) -> None:
        """The entry of a call under way keeps what ended it. A cancelled run stays open."""
        if self.call is not None:
            self.call.failed(error)

    async def child_ended(self, call_id: str, result: object) -> None:
        """The agent that a tool call has called is done; the SDK's own text says that it failed."""
        child = self._children.get(call_id)
        if child is None or child.over:
            return
        failed = isinstance(result, str) and result.startswith(TOOL_FAILED)
        kind = child.call.error if child.call else None
        await child.session.afinish(
            f"failure: {kind or 'unknown'}" if failed else "success", completed=child._last_step(())
        )

    def pause(self) -> None:
        """It waits for an approval, and so do the runs within it."""
        for run in (*self._children.values(), self):
            if not run.over:
                run.session.pause()

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
