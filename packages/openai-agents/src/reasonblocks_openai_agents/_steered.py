"""One steered run of the SDK: from the request of each call to its decision, and from the run's end to its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from reasonblocks._formats.openai import Item, Items
from reasonblocks._session import SteeringSession
from reasonblocks.adapters import HeldRun, Newest, call_key, same_model
from reasonblocks.types import Step, StepDecision, StepInput

from ._calls import Call
from ._convert import TOOL_FAILED, ToolCalls, completed_step, failed_calls, newest_call_id
from ._request import steered, without_foreign_reasoning
from ._waiting import Asked, going_on

NO_ROUTING: Mapping[str, object] = MappingProxyType({})
MAX_CHILDREN = 64
"""Runs of agents that this run's tools called; beyond, the oldest is forgotten here."""
MAX_AUTHORS = 4_096
"""Reasoning items of routed calls whose model is remembered."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one run is to be finished, with the last step that it completed."""

    session: SteeringSession
    outcome: str
    last: Step | None


async def afinish(endings: Iterable[Ending]) -> None:
    for one in endings:
        await one.session.afinish(one.outcome, completed=one.last)


def finish(endings: Iterable[Ending]) -> None:
    """`afinish`, where no event loop runs."""
    for one in endings:
        one.session.finish(one.outcome, completed=one.last)


class SteeredRun(HeldRun):
    """A run as its user sees it, and as the SDK's hooks tell of it."""

    def __init__(
        self,
        session: SteeringSession,
        *,
        agent_name: str | None = None,
        model_routing: Mapping[str, object] = NO_ROUTING,
        server_managed: bool = False,
        resumed: bool = False,
        waits_for: Sequence[str] = (),
    ) -> None:
        super().__init__(session)
        self.agent_name = agent_name
        """The agent whose turn it is, after a handoff the one that took over; None until one is known."""
        self.model_routing = model_routing
        """Of the client that decides: what its routes mean, whoever asks the model."""
        self.call: Call | None = None
        self.tools = ToolCalls()
        self._waited_for = tuple(waits_for)
        self._server_managed = server_managed
        self._resumed_routed = resumed and bool(model_routing)
        self._failed = False
        self.answer: Step | None = None
        self.asked: Asked | None = None  # before any guidance
        self._authors: Newest[str, str] = Newest(MAX_AUTHORS)
        self._children: Newest[str, SteeredRun] = Newest(MAX_CHILDREN)

    # ------------------------------------------------------------ what the user reads and says

    @property
    def children(self) -> list[SteeredRun]:
        """Runs of agents that this run's agents called as tools, the newest 64."""
        return list(self._children.values())

    def snapshot(self) -> dict[str, object]:
        """Plain JSON to keep beside `RunState.to_json()`: give it to the run that goes on, as `snapshot`."""
        within = [run.kept() for run in self._children.values() if not run.over]
        return {**self.session.trace.snapshot(), "waits_for": list(self.waits_for), "children": within}

    def kept(self) -> dict[str, object]:
        """What the run that holds it keeps of it: its snapshot, and who it is."""
        run = self.session.run
        names = {"agent_name": run.agent_name, "task": run.task, "model": run.model}
        return {**names, "parent_call_id": run.parent_call_id, "snapshot": self.snapshot()}

    # ------------------------------------------------------------ one call

    async def decide(
        self, items: Sequence[Item], *, agent_name: str | None, own_model: str, server_managed: bool = False
    ) -> Call | None:
        """Decide the next call; return None after a fault, while steering is off, and once the run has failed.

        Older SDKs let a call go on that a guardrail beside it has ended; it would reopen the run.
        A conversation that the server keeps has no tail from here on, because the server would store it.
        """
        if self._failed:
            return None
        if server_managed and not self._server_managed:
            self._server_managed = True
            self.session.no_tail("the server keeps this conversation and would store a message of ours")
        with self.session.guard("deciding a call"):
            self.agent_name = agent_name or self.agent_name
            if self.call is not None:
                self.call.catch_up(items)
            done = self._completed(items) if self.calls else None
            await afinish(self._settled(done))
            key = call_key(self.session.trace.state)
            given = StepInput(key=key, completed=done, default_model=own_model, agent_name=agent_name)
            decision = await self.session.abegin_step(given)
            self.asked = Asked.of(items)
            self.call = Call(self, decision, own_model)
            self.tools.forget()
            return self.call
        return None

    def say(self, instructions: str | None, items: Items, decision: StepDecision) -> tuple[str | None, Items]:
        """The request with its guidance: never a message of its own where the server would keep it."""
        tail = decision.placement == "tail" and not self._server_managed
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
        self.answer = answer
        if not same_model(call.model, call.own_model):
            for one in reasoning:
                self._authors.keep(one, call.model)

    def _completed(self, items: Sequence[Item]) -> Step:
        return completed_step(items, self.answer, self.tools.ended, self.tools.failed)

    def _is_foreign(self, model: str, own_model: str) -> Callable[[str], bool]:
        unknown = "" if self._resumed_routed else own_model  # what another process heard may be anyone's
        return lambda one: not same_model(self._authors.get(one, unknown), model)

    # ------------------------------------------------------------ runs within it

    def child(self, call_id: str, make: Callable[[], SteeredRun]) -> SteeredRun:
        """The run of the agent that a tool call has called; made when that agent makes its first call."""
        return self._children.get(call_id) or self._children.keep(call_id, make())

    def within(self, items: Sequence[Item], make: Callable[[str | None], SteeredRun]) -> SteeredRun:
        """The same where no hook has told of the tool call: known by the request, `make` gets the id if it is sure."""
        answered = newest_call_id(items)
        only = self.waits_for[0] if len(self.waits_for) == 1 else None
        waiting = (run for child in self._children.values() for run in child._waiting(answered))
        return going_on(waiting, items) or self.adopt(make(only))

    def adopt(self, run: SteeredRun) -> SteeredRun:
        """Holds a run that was made for an agent of a tool of this one."""
        call_id = run.session.run.parent_call_id
        return self._children.keep(run.run_id if call_id is None or call_id in self._children else call_id, run)

    def waiting(self, call_id: str | None, items: Sequence[Item]) -> SteeredRun | None:
        """Return the run, this one or a nested one, whose newest answer made that call and which `items` continue."""
        return going_on(self._waiting(call_id), items)

    def _waiting(self, call_id: str | None) -> Iterator[SteeredRun]:
        if call_id in self.waits_for and not self.over:
            yield self
        for child in self._children.values():
            yield from child._waiting(call_id)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The tool calls whose results its next request brings."""
        return self._waited_for if self.call is None else self.call.waits_for

    def holds(self, run: SteeredRun) -> bool:
        """Whether it is this run, or one within it."""
        return run is self or any(child.holds(run) for child in self._children.values())

    # ------------------------------------------------------------ the run's end

    def ends(self, items: Sequence[Item] = ()) -> Iterator[Ending]:
        """The run is done; `items` are those that it made, for the results of the last step."""
        last = self._last_step(items)
        yield from self._settled(last)
        yield Ending(self.session, "success", last)

    def fails(self, error: BaseException) -> Iterator[Ending]:
        """The run, and those within it, end with this error. A cancelled run stays open."""
        if isinstance(error, Exception):
            self._failed = True
            for run in self._open():
                run.cut_off(error)
                yield Ending(run.session, f"failure: {type(error).__name__}", run._last_step(()))
        self.cut_off(error)

    def cut_off(self, error: BaseException) -> None:
        """The entry of a call under way keeps what ended it."""
        if self.call is not None:
            self.call.failed(error)

    async def child_ended(self, call_id: str, result: object) -> None:
        """The agent that a tool call has called is done; the SDK's own text says that it failed.

        SDK 0.18 reports one that waits for an approval so, too: a run that left a call ends when its parent goes on.
        """
        child = self._children.get(call_id)
        failed = isinstance(result, str) and result.startswith(TOOL_FAILED)
        if child is None or (child.waits_for and not failed):
            return
        if child.call is not None and not failed:
            child.call.catch_up([{"role": "assistant", "content": result}])
        await afinish(child._ends_as_tool({call_id} if failed else frozenset()))

    def _settled(self, done: Step | None) -> Iterator[Ending]:
        """A step that is done has no tool under way, whose agents' ends no hook may have told of."""
        for child in self.children:
            yield from child._ends_as_tool(failed_calls(done))

    def _ends_as_tool(self, failed: Set[str]) -> Iterator[Ending]:
        for run in self._open():
            yield Ending(run.session, run._outcome(failed), run._last_step(()))

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
        within = [run for child in self._children.values() for run in child._open()]
        return within if self.over else [*within, self]

    def _last_step(self, items: Sequence[Item]) -> Step | None:
        """The last step, with what came back; None where the last call was not answered: it is judged already."""
        if self.session.trace.state.pending is None:
            return None
        with self.session.guard("reading the last step"):
            return self._completed(items)
        return None
