"""Maps the life of an agent's run onto steering sessions: start, decide, apply, record, finish."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from reasonblocks import SteeringSession
from reasonblocks.adapters import ABANDONED, InThread, OpenCall, RoutedModels, SteeringFlow
from reasonblocks.exceptions import ConfigError, StaleKey
from reasonblocks.types import StepDecision, StepInput, StepOutcome

from ._channel import CHANNEL, START, About, Carried, with_new_id
from ._control import answer_to, calls_left, can_wait, has_room, question, stopped_by, superstep
from ._convert import is_models_own_end, last_answer, outcome_of, step_input, task_of
from ._failures import WATCH
from ._request import Overrides, breakpoints, has_tail, marks_system, steer, without_foreign_thinking
from ._runs import Run, ScopedRuns, Sessions, When
from .models import build, chat_model, effort_settings, model_name, takes_cache_control

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from reasonblocks import ReasonBlocks
    from reasonblocks.adapters import RunOptions


@dataclass(slots=True, eq=False, kw_only=True)
class Call(OpenCall):
    """One steered call: its request, and the run's state in the channel, which its answer changes."""

    request: ModelRequest[Any]
    channel: str
    """The name of the middleware in the channel."""
    carried: Carried
    run: Run

    def raised(self, error: BaseException) -> None:
        """Record the error, which is raised to the user. An interrupt is not recorded: the call is repeated."""
        if not isinstance(error, GraphBubbleUp):
            self.failed(error)

    def with_state(self, response: ModelResponse[Any]) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Record the answer; return the response with the run's new state, or the response alone after a fault."""
        latency_ms = self.latency_ms
        with self.session.guard("recording an answer"):
            answer = next((message for message in response.result if isinstance(message, AIMessage)), None)
            if not self.record(partial(self._outcome, answer, latency_ms)):
                return response
            snapshot = self.session.trace.snapshot()
            after: Carried = {**self.carried, "seen": answer.id if answer else None, "snapshot": snapshot}
            self.run.hand_out(self.session, self.carried["snapshot"], snapshot)
            return ExtendedModelResponse(response, Command(update={CHANNEL: {self.channel: after}}))
        return response

    def _outcome(self, answer: AIMessage | None, latency_ms: float) -> StepOutcome:
        with self.session.guard("reading the answer"):
            if answer is not None:
                return outcome_of(answer, model=self.model, latency_ms=latency_ms)
        return StepOutcome(model=self.model, latency_ms=latency_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """A run that is about to begin."""

    run_id: str
    about: About
    before_run: str | None
    left_open: Run | None
    """The run that the thread's last run left open in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision before its call, with its run, whose state in the channel is that before the decision."""

    decision: StepDecision
    run: Run
    session: SteeringSession
    carried: Carried


class Lifecycle:
    """The work of one middleware, as flows: its sync hooks drive them in their thread, its async hooks on the loop.

    A call is read twice. `decide` reads it in a node of the graph, from which the run can end or wait for a person in a
    checkpoint. `apply` reads it around the model call, with the request that the other middleware leave, and gets the
    same decision for the same key.
    """

    def __init__(self, rb: ReasonBlocks, options: RunOptions, interrupt_when: When = None) -> None:
        self._rb = rb
        self._options = options
        self.name = "-".join(("SteeringMiddleware", *_words(options.agent_name)))
        self.runs = ScopedRuns(options.run_id)
        self.counts_supersteps = rb.second_look or rb.tells_framework_limits(options)
        self._interrupt_when = interrupt_when
        self._sessions = Sessions(rb, options, self.runs, interrupt_when)
        self._routed = RoutedModels(chat_model)

    # ------------------------------------------------------------ a run starts

    def start(self, state: Mapping[str, Any], config: RunnableConfig) -> SteeringFlow[Carried | None]:
        if self._rb.disabled:
            return None
        with self._rb.guard("starting a run"):
            start = self._starting(state, config)
            if start.left_open is not None:
                yield from start.left_open.session.finish_flow(ABANDONED)
            session = yield InThread(partial(self._sessions.opened, start.run_id, start.about))
            return self._started(start, session, config)
        return None

    def _starting(self, state: Mapping[str, Any], config: RunnableConfig) -> _Start:
        messages = state["messages"]
        earlier = self._carried(state)
        left = self.runs.find(earlier["run_id"]) if earlier else None
        answer = last_answer(messages, None)
        before_run = answer.id if answer else None
        caller = WATCH.caller(config)
        thread = config.get("configurable", {}).get("thread_id")
        return _Start(
            run_id=self.runs.new_id(config.get("metadata", {}).get("reasonblocks_run_id")),
            about=About(
                task=self._options.task or task_of(messages, before_run),
                session_id=None if thread is None else str(thread),
                parent_run_id=caller.run.run_id if caller else None,
                parent_call_id=caller.call_id if caller else None,
                agent_name=_agent_name(config, caller.run.agent_name if caller else ""),
            ),
            before_run=before_run,
            left_open=left if left is not None and not left.over else None,
        )

    def _started(self, start: _Start, session: SteeringSession, config: RunnableConfig) -> Carried:
        carried = Carried(
            run_id=session.run.run_id,
            snapshot=session.trace.snapshot(),
            about=About(**{**start.about, "task": session.run.task}),
            model=self._options.model or "",
            before_run=start.before_run,
            seen=None,
            key=None,
            supersteps=[superstep(config)],
        )
        WATCH.attach(config, self.runs.add(Run(session, carried["snapshot"])))
        return carried

    # ------------------------------------------------------------ a step is decided

    def decide(self, state: Mapping[str, Any], config: RunnableConfig) -> SteeringFlow[Decided | None]:
        if (carried := self._carried(state)) is None:
            return None
        with self._rb.guard("deciding a step"):
            run, session = yield from self._sessions.run(carried, goes_on=True)
            WATCH.attach(config, run)
            if not _waits(given := self._following(state, carried, session)):
                given = replace(given, calls_left=calls_left(state, carried, config))
                decision = yield from _begun(session, given)
                supersteps = [*carried.get("supersteps", [])[-1:], superstep(config)]
                now: Carried = {**carried, "supersteps": supersteps}
                return Decided(decision=decision, run=run, session=session, carried=now)
        return None

    def ask(self, decided: Decided, config: RunnableConfig) -> None:
        """Ask a person, and add the answer to the guidance of the call. Raises `GraphInterrupt` until there is one.

        LangGraph then drops what the hook has done, and repeats the hook when it has the answer.
        """
        run, session, decision = decided.run, decided.session, decided.decision
        if not can_wait(config):
            with session.guard("asking a person"):
                raise ConfigError("interrupt_when", self._interrupt_when, "needs an agent with a checkpointer")
            return
        run.hand_out(session, decided.carried["snapshot"])
        try:
            answer = answer_to(question(run.run_id, decision), config)
        except GraphBubbleUp:
            with session.guard("pausing a run"):
                session.pause()
            raise
        with session.guard("adding a person's answer"):
            session.add_note("" if answer is None else str(answer))

    def _given(
        self, state: Mapping[str, Any], carried: Carried, session: SteeringSession, model: str = ""
    ) -> StepInput:
        return step_input(
            state["messages"],
            before_run=carried["before_run"],
            seen=carried["seen"],
            last_key=carried["key"],
            model=carried["model"] or model,
            agent_name=self._options.agent_name or carried["about"].get("agent_name"),
            guard=session.guard,
        )

    def _following(self, state: Mapping[str, Any], carried: Carried, session: SteeringSession) -> StepInput:
        """Return the input of the next call: a new step, too, if a recorded answer repeats an earlier id."""
        given = self._given(state, carried, session)
        now = session.trace.state
        return with_new_id(given, now.calls) if given.key == carried["key"] and now.pending is not None else given

    def after(self, decided: Decided) -> Carried | None:
        """Return the run's state in the channel after the decision."""
        with self._rb.guard("keeping a decision"):
            snapshot = decided.session.trace.snapshot()
            decided.run.hand_out(decided.session, snapshot)
            return {**decided.carried, "key": decided.decision.key, "snapshot": snapshot}
        return None

    # ------------------------------------------------------------ a step is applied

    def apply(self, request: ModelRequest[Any]) -> SteeringFlow[Call | None]:
        if (carried := self._carried(request.state)) is None:
            return None
        with self._rb.guard("steering a call"):
            run, session = yield from self._sessions.run(carried)
            given = self._given(request.state, carried, session, model_name(request.model))
            decision = yield from _begun(session, given)
            model, steered = request.model, request
            if not session.observes:
                if not has_tail(request.messages):
                    decision = session.without_tail(decision)
                routed = yield from self._routed.model(session, decision.route, self._rb.model_routing, build)
                model = routed or model
                steered = self._steered(request, session, decision, model)
            return Call(
                session=session,
                decision=decision,
                model=model_name(model),
                request=steered,
                channel=self.name,
                carried={**carried, "key": decision.key, "model": self._options.model or model_name(request.model)},
                run=run,
            )
        return None

    def _steered(
        self, request: ModelRequest[Any], session: SteeringSession, decision: StepDecision, model: BaseChatModel
    ) -> ModelRequest[Any]:
        messages = request.messages
        if self._rb.model_routing:
            messages = without_foreign_thinking(messages, model_name(model), model_name(request.model))
        overrides: Overrides = {"model": model, "messages": messages}
        if decision.effort is not None:
            with session.asking_effort():
                overrides["model_settings"] = {**request.model_settings, **effort_settings(model, decision.effort)}
        is_anthropic = takes_cache_control(model)
        cached = marks_system(decision) and is_anthropic
        marks = breakpoints(request, messages, model) if cached else 0
        overrides.update(
            steer(
                request.system_message,
                messages,
                decision,
                cache_control=cached,
                merges=is_anthropic,
                breakpoints=marks,
            )
        )
        return request.override(**overrides)

    # ------------------------------------------------------------ a tool is called

    def refusal(self, request: ToolCallRequest) -> SteeringFlow[ToolMessage | None]:
        """Return the answer to a call whose tool is used up; None for a call that is to be made."""
        if (carried := self._carried(request.state)) is None:
            return None
        with self._rb.guard("limiting a tool"):
            _, session = yield from self._sessions.run(carried)
            call = request.tool_call
            answer = last_answer(request.state["messages"], carried["before_run"])
            beside = list(takewhile(lambda one: one["id"] != call["id"], answer.tool_calls if answer else ()))
            text = session.tool_refusal(call["name"], sum(one["name"] == call["name"] for one in beside))
            if text is not None:
                return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        return None

    # ------------------------------------------------------------ a run ends

    def finish(self, state: Mapping[str, Any], config: RunnableConfig) -> SteeringFlow[Decided | None]:
        """End the run, or return the decision of one more call: its second look."""
        if (carried := self._carried(state)) is None:
            return None
        with self._rb.guard("finishing a run"):
            run, session = yield from self._sessions.run(carried)
            reason = _stopped(session) or stopped_by(last_answer(state["messages"], carried["before_run"]))
            if reason is not None:
                yield from session.finish_flow(f"stopped: {reason}")
                return None
            given = self._following(state, carried, session)
            if session.wants_second_look and _can_continue(state, carried, config):
                decision = yield from session.second_look_flow(given)
                if decision is not None:
                    return Decided(decision=decision, run=run, session=session, carried=carried)
            decided_before = given.key == carried["key"]  # its call never came
            yield from session.finish_flow(completed=None if decided_before else given.completed)
        return None

    def _carried(self, state: Mapping[str, Any]) -> Carried | None:
        """Return our part of the channel; None while steering is off, or if the run started without it."""
        if self._rb.disabled:
            return None
        carried: Carried | None = (state.get(CHANNEL) or {}).get(self.name)
        return carried


def _begun(session: SteeringSession, given: StepInput) -> SteeringFlow[StepDecision]:
    try:
        return (yield from session.begin_flow(given))
    except StaleKey:
        return (yield from session.begin_flow(with_new_id(given, session.trace.state.calls)))


def _can_continue(state: Mapping[str, Any], carried: Carried, config: RunnableConfig) -> bool:
    """Return True if one more call cannot cost the run the result that it has."""
    own_end = is_models_own_end(state["messages"], carried["before_run"], carried["seen"])
    return own_end and state.get("structured_response") is None and has_room(state, carried, config)


def _stopped(session: SteeringSession) -> str | None:
    """Return the reason for which `stop_when` has ended the run, perhaps in another process."""
    last = session.trace.state.last
    return last.stop if last else None


def _agent_name(config: RunnableConfig, of_caller: str) -> str | None:
    """Return the name of `create_agent(name=...)`. An agent without one, in a tool, inherits the caller's metadata."""
    name = config.get("metadata", {}).get("lc_agent_name")
    return None if name == of_caller else name


def _waits(given: StepInput) -> bool:
    """Return True for a first call whose model is unknown: it is left to `apply`, which sees the model."""
    return given.key == START and not given.default_model


def _words(agent_name: str | None) -> list[str]:
    """Return the parts of a name that a node may have: LangGraph reserves ":" and "|"."""
    return re.findall(r"\w+", agent_name or "")
