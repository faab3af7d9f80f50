"""Steered runs of the SDK: each call from its request to its recorded answer, and each run until its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reasonblocks import SteeringSession
from reasonblocks.adapters import (
    HeldRun,
    Newest,
    OpenCall,
    SteeringFlow,
    adrive,
    call_key,
    new_user_text,
    same_model,
)
from reasonblocks.messages.openai import Item, Items, answer_of, local_call_ids, newest_answer, usage_of
from reasonblocks.render import has_tail
from reasonblocks.types import Step, StepDecision, StepInput, StepOutcome

from ._convert import TOOL_FAILED, ToolCalls, completed_step, failed_calls, newest_call_id, outcome_of
from ._request import reasoning_ids, steer_call, without_foreign_reasoning

if TYPE_CHECKING:
    from agents import Model

CallArguments = dict[str, Any]
NO_ROUTING: Mapping[str, object] = MappingProxyType({})
MAX_CHILDREN = 64
"""Remembered runs of agents that a run's tools called; beyond, the oldest is forgotten."""
MAX_AUTHORS = 4_096
"""Reasoning items of routed calls whose model is remembered."""
MAX_OF_ONE_ID = 64
"""The most concurrent runs that wait for calls with one id."""


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # a thread without an event loop
        return None


@dataclass(slots=True, eq=False, kw_only=True)
class Call(OpenCall):
    """One steered model call. `own_model` is the name of the agent's model, `model` of the one that is called."""

    run: SteeredRun
    own_model: str
    filtered: bool = True
    """True if the outgoing request has the guidance already."""
    request: str = ""
    """Identifies the request, if no filter has seen it."""
    unsteered: tuple[str | None, Items] = (None, [])
    """The call's instructions and its last item without its guidance, for a retry after a refusal."""
    target: Model | None = None
    """The model that the newest attempt calls."""
    waits_for: tuple[str, ...] = ()
    """The answer's tool calls that the SDK runs."""
    task: asyncio.Task[Any] | None = field(default_factory=_task)

    def asks(self, target: Model, model: str, own_model: str) -> None:
        """Begin an attempt: the first one, or a retry by the SDK."""
        self.target, self.model, self.own_model = target, model, own_model
        self.start()

    @property
    def is_of_this_task(self) -> bool:
        """Return whether the call's run works in the current task. Tools run in other tasks."""
        return self.task is _task()

    def answer(self, output: Iterable[Item], usage: object, *, just_now: bool = True) -> None:
        """Record the answer, reported by whoever sees it first. Its latency is known only if it arrived `just_now`."""
        self.record(partial(self._outcome, output, usage, self.latency_ms if just_now else None))

    def _outcome(self, output: Iterable[Item], usage: object, latency_ms: float | None) -> StepOutcome:
        items = list(output)
        step = answer_of(items)
        self.waits_for = local_call_ids(items)
        self.run.heard(step, reasoning_ids(items), self)
        return outcome_of(step, usage_of(usage), model=self.model, latency_ms=latency_ms, ttft_ms=self.ttft_ms)

    def catch_up(self, items: Sequence[Item]) -> None:
        """Record an answer from the items that follow it: no hook reports those of a model object in a tool's agent."""
        if not self.recorded and (output := newest_answer(items)):
            self.answer(output, None, just_now=False)


CALL: ContextVar[Call | None] = ContextVar("reasonblocks_openai_call", default=None)
"""The newest call that was decided in this task or in the one that started it; inside a tool, its agent's call.

The SDK filters a request and sends it in the same task, although it runs other work in tasks of their own.
"""


def waiting_call() -> Call | None:
    """Return the call whose request, with its guidance, is about to be sent here."""
    call = CALL.get()
    return call if call is not None and call.filtered and not call.answered else None


def calling_run() -> SteeredRun | None:
    """Return the run whose tool is the caller: tools run in tasks, or threads, of their own."""
    call = CALL.get()
    if call is None or call.is_of_this_task or call.run.over:
        return None
    return call.run if call.answered or call.error is None else None  # no tool runs after a call that failed


@dataclass(frozen=True, slots=True)
class RequestEnds:
    """The first and the last item of a request: enough to recognise the next request, without the history between."""

    length: int
    first: Item
    last: Item

    @classmethod
    def of(cls, items: Sequence[Item]) -> RequestEnds | None:
        return cls(len(items), items[0], items[-1]) if items else None

    def begins(self, items: Sequence[Item]) -> bool:
        """Return True if a longer request begins as this one did, as far as is known."""
        longer = self.length < len(items)
        return longer and items[0] == self.first and items[self.length - 1] == self.last


class SteeredRun(HeldRun):
    """One run of the SDK: its user's view, the inputs of each decision, and the runs of agents in its tools."""

    def __init__(
        self,
        session: SteeringSession,
        *,
        agent_name: str | None = None,
        model_routing: Mapping[str, object] = NO_ROUTING,
        server_managed: bool = False,
        resumed: bool = False,
        waits_for: Sequence[str] = (),
        user_text: str = "",
    ) -> None:
        super().__init__(session)
        self.agent_name = agent_name
        """The current agent; after a handoff, the one that took over. None until one is known."""
        self.model_routing = model_routing
        """The routed models of the client that decides, whoever makes the call."""
        self.most_calls: int | None = None
        """The number of its calls at which the SDK's `max_turns` ends it; None if that is unknown."""
        self.call: Call | None = None
        self.tools = ToolCalls()
        self._waited_for = tuple(waits_for)
        self._server_managed = server_managed
        self._resumed_routed = resumed and bool(model_routing)
        self._failure: str | None = None
        self.answer: Step | None = None
        self._user_text = user_text
        """The user's new text in the newest request; the task is none."""
        self.asked: RequestEnds | None = None  # before any guidance
        self._authors: Newest[str, str] = Newest(MAX_AUTHORS)
        self._children: Newest[str, SteeredRun] = Newest(MAX_CHILDREN)

    # ------------------------------------------------------------ what the user reads and sets

    @property
    def children(self) -> list[SteeredRun]:
        """Runs of agents that this run's agents called as tools, the newest 64."""
        return list(self._children.values())

    def snapshot(self) -> dict[str, object]:
        """Return plain JSON to keep beside `RunState.to_json()`: pass it as `snapshot` to the run that continues."""
        within = [run.kept() for run in self._children.values() if not run.over]
        waits = {"waits_for": list(self.waits_for), "user_text": self._user_text}
        return {**self.session.trace.snapshot(), **waits, "children": within}

    def kept(self) -> dict[str, object]:
        """Return the snapshot, the identity and the waiting calls that a parent run keeps of this one."""
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
        Raises `RunStopped` if `stop_when` ends the run.
        """
        if self._failure is not None:
            return None
        if server_managed and not self._server_managed:
            self._server_managed = True
            self.session.no_tail("the server keeps this conversation and would store a message of ours")
        with self.session.guard("deciding a call"):
            self.agent_name = agent_name or self.agent_name
            if self.call is not None:
                self.call.catch_up(items)
            done = self._completed(items) if self.calls else None
            await adrive(self._settled(done))
            self._user_text = new_user_text(reversed(items)) if self.calls else ""
            decision = await self.session.abegin_step(self._next_call(done, own_model))
            if await self._failed_meanwhile():
                return None
            self.asked = RequestEnds.of(items)
            self.call = Call(session=self.session, decision=decision, model=own_model, run=self, own_model=own_model)
            self.tools.forget()
            return self.call
        return None

    async def _failed_meanwhile(self) -> bool:
        """Return True if the run failed while a call of it was decided, which has opened it again: finish it again."""
        if self._failure is None:
            return False
        await self.session.afinish(self._failure)
        return True

    def _next_call(self, done: Step | None, own_model: str) -> StepInput:
        return StepInput(
            key=call_key(self.session.trace.state),
            completed=done,
            default_model=own_model,
            agent_name=self.agent_name,
            calls_left=None if self.most_calls is None else self.most_calls - self.calls,
        )

    def say(self, instructions: str | None, items: Items, decision: StepDecision) -> tuple[str | None, Items]:
        """Return the request with its guidance: never in the input where the server would store it."""
        with self.session.guard("placing guidance"):
            if self._server_managed or not has_tail(items):
                decision = self.session.without_tail(decision)
            return steer_call(instructions, items, decision)
        return instructions, items

    def fit(self, items: str | Items, model: str, own_model: str) -> str | Items:
        """Return the input that this model accepts: without the reasoning that only other models can read."""
        routed = bool(self._authors) or self._resumed_routed or not same_model(model, own_model)
        if isinstance(items, str) or self.session.observes or not routed:
            return items
        with self.session.guard("leaving out other models' reasoning"):
            return without_foreign_reasoning(items, self._is_foreign(model, own_model))
        return items

    def heard(self, answer: Step, reasoning: Sequence[str], call: Call) -> None:
        """Keep an answer, so that the next request need not be read for it."""
        self.answer = answer
        if not same_model(call.model, call.own_model):
            for item_id in reasoning:
                self._authors.keep(item_id, call.model)

    def _completed(self, items: Sequence[Item]) -> Step:
        step = completed_step(items, self.answer, self.tools.ended, self.tools.failed)
        return replace(step, user_text=self._user_text)

    def _is_foreign(self, model: str, own_model: str) -> Callable[[str], bool]:
        unknown = "" if self._resumed_routed else own_model  # answers of another process may be anyone's
        return lambda item_id: not same_model(self._authors.get(item_id, unknown), model)

    # ------------------------------------------------------------ runs within it, for `Steering.run_of`

    def child(self, call_id: str, make: Callable[[], SteeredRun]) -> SteeredRun:
        """Return the run of the agent that this tool call runs; `make` it at that agent's first call."""
        return self._children.get(call_id) or self._children.keep(call_id, make())

    def child_asking(self, items: Sequence[Item], make: Callable[[str | None], SteeredRun]) -> SteeredRun:
        """Return the child whose next request this is, or `make` it: its tool call's id is given if it is certain."""
        answered = newest_call_id(items)
        only = self.waits_for[0] if len(self.waits_for) == 1 else None
        waiting = (run for child in self._children.values() for run in child._waiting(answered))
        return next_of(waiting, items) or self.adopt(make(only))

    def adopt(self, run: SteeredRun) -> SteeredRun:
        """Keep and return a run that was made for an agent in a tool of this one."""
        call_id = run.session.run.parent_call_id
        return self._children.keep(run.run_id if call_id is None or call_id in self._children else call_id, run)

    def waiting(self, call_id: str | None, items: Sequence[Item]) -> SteeredRun | None:
        """Return the run, this one or a nested one, whose newest answer made that call and which `items` continue."""
        return next_of(self._waiting(call_id), items)

    def _waiting(self, call_id: str | None) -> Iterator[SteeredRun]:
        if call_id in self.waits_for and not self.over:
            yield self
        for child in self._children.values():
            yield from child._waiting(call_id)

    @property
    def stopped(self) -> bool:
        """Return True if `stop_when` has ended the run."""
        last = self.session.trace.state.last
        return last is not None and last.stop is not None

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The tool calls whose results its next request brings."""
        return self._waited_for if self.call is None else self.call.waits_for

    def holds(self, run: SteeredRun) -> bool:
        """Return True if `run` is this run or one within it."""
        return run is self or any(child.holds(run) for child in self._children.values())

    # ------------------------------------------------------------ the run's end

    def looks_again(self, items: Sequence[Item]) -> SteeringFlow[bool]:
        """Return True if the run gets one more call: its last answer, which called no tool, is in doubt.

        `items` are those that the run made.
        """
        call = self.call
        if call is None or not call.answered or call.waits_for or not self.session.wants_second_look:
            return False
        last = self._last_step(items)
        if last is None:
            return False
        yield from self._settled(last)
        return (yield from self.session.second_look_flow(self._next_call(last, call.own_model))) is not None

    def ends(self, items: Sequence[Item] = ()) -> SteeringFlow[None]:
        """Finish the run as done. `items` are those that it made, for the results of its last step."""
        last = self._last_step(items)
        yield from self._settled(last)
        yield from self.session.finish_flow(completed=last)

    def fails(self, error: BaseException) -> SteeringFlow[None]:
        """Finish the run, and those within it, with this error. A cancelled run stays open."""
        if isinstance(error, Exception):
            self._failure = f"failure: {type(error).__name__}"
            for run in self._open():
                run.cut_off(error)
                yield from run.session.finish_flow(self._failure, completed=run._last_step(()))
        self.cut_off(error)

    def cut_off(self, error: BaseException) -> None:
        """Record the error that ended a call under way."""
        if self.call is not None:
            self.call.failed(error)

    async def child_ended(self, call_id: str, result: object) -> None:
        """Finish the run of the agent that a tool call ran. The SDK's own text shows whether it failed.

        SDK 0.18 also calls this for one that waits for an approval: a run that left a call ends with its parent.
        """
        child = self._children.get(call_id)
        failed = isinstance(result, str) and result.startswith(TOOL_FAILED)
        if child is None or (child.waits_for and not failed):
            return
        if child.call is not None and not failed:
            child.call.catch_up([{"role": "assistant", "content": result}])
        await adrive(child._ends_as_tool({call_id} if failed else frozenset()))

    def _settled(self, done: Step | None) -> SteeringFlow[None]:
        """Finish the runs of agents in the tools of a completed step, whose ends no hook may have reported."""
        for child in self.children:
            yield from child._ends_as_tool(failed_calls(done))

    def _ends_as_tool(self, failed: Set[str]) -> SteeringFlow[None]:
        for run in self._open():
            yield from run.session.finish_flow(run._outcome(failed), completed=run._last_step(()))

    def _outcome(self, failed: Set[str]) -> str:
        """Return the outcome of a run that is done. An agent in a tool has failed if its tool call is in `failed`."""
        error = self.call.error if self.call and not self.call.answered else None
        return f"failure: {error or 'unknown'}" if error or self.session.run.parent_call_id in failed else "success"

    def pause(self) -> None:
        """Pause the run, and those within it: it waits for an approval."""
        for run in self._open():
            run.session.pause()

    def _open(self) -> list[SteeredRun]:
        """Return the runs within it, then itself, that are not over."""
        within = [run for child in self._children.values() for run in child._open()]
        return within if self.over else [*within, self]

    def _last_step(self, items: Sequence[Item]) -> Step | None:
        """Return the last step with its results; None if its call was not answered: it is judged already."""
        if self.session.trace.state.pending is None:
            return None
        with self.session.guard("reading the last step"):
            return self._completed(items)
        return None


def next_of(runs: Iterable[SteeredRun], items: Sequence[Item]) -> SteeredRun | None:
    """Return which of the runs that wait for the same call id makes this request.

    Some models restart the numbering of their calls in each conversation, so several may wait for one id.
    """
    found = list(runs)
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda run: _likeness(run, items))


def with_waiting(known: Iterable[SteeredRun], call_id: str, run: SteeredRun) -> tuple[SteeredRun, ...]:
    """Return the runs that wait for a call with that id, including this one."""
    others = [other for other in known if other is not run and not other.over and call_id in other.waits_for]
    return (*others[1 - MAX_OF_ONE_ID :], run)


def _likeness(run: SteeredRun, items: Sequence[Item]) -> int:
    """Rate a request as the run's next: one point if it begins like the last, one if it holds the answer to that."""
    begins = run.asked is not None and run.asked.begins(items)
    return begins + (run.answer is not None and answer_of(newest_answer(items)) == run.answer)
