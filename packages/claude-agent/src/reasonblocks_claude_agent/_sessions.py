"""The runs of one session of the CLI, the main agent's and its subagents', and the state of an unfinished one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any
from weakref import WeakKeyDictionary

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.adapters import HeldRun, Newest, OpenCall, RunOptions, Runs, adrive, call_key, user_text
from reasonblocks.exceptions import ConfigError
from reasonblocks.messages.claude_code import task_done
from reasonblocks.types import AdapterCaps, Step, StepDecision, StepInput, StepOutcome

from ._stream import Answer, Stream
from .convert import batch_step, outcome_of, step_as_json, step_kept
from .hooks import Delivery, HookDelivery

FRAMEWORK = "claude-agent"
MAX_AGENTS = 256
MAX_SESSIONS = 1_024
"""Sessions whose unfinished runs a client remembers; a session beyond that begins a new run when it is resumed."""
Snapshots = MutableMapping[str, Any]
"""The state of a session's unfinished run, by the session's id: plain JSON."""


class AgentRun(HeldRun):
    """The run of the main agent for one prompt, or of one subagent."""

    def __init__(
        self,
        session: SteeringSession,
        stream: Stream,
        own_model: str,
        agent_name: str | None = None,
        delivery: Delivery | None = None,
        max_turns: int | None = None,
    ) -> None:
        super().__init__(session)
        self._max_turns = max_turns
        self.own_model = own_model
        self.asked_model = own_model
        self._stream = stream
        self._delivery = delivery or HookDelivery()
        self._agent_name = agent_name
        self.judged: Step | None = None
        """The step before the newest request: the stream does not repeat it when a session is resumed."""
        self._call: OpenCall | None = None
        """The newest decided request."""
        self._tools_begun: dict[str, str] = {}
        """The names of the tools that the answer to this request has called so far, by the ids of their calls."""
        self._heard: Answer | None = None
        """The answer that is recorded already."""
        self._user_text = ""
        """The user's new text in the newest decided request; the prompt that began the run is none."""
        self.resulted = asyncio.Event()
        """Set once the turn's result has arrived and the run has its outcome."""
        self.turn_ended = False
        """True if the agent has finished its turn, or was stopped: the result is on its way."""
        self.stop: str | None = None
        """The reason for which `stop_when` ended the run."""
        self._turn_began_at = 0
        """The number of calls that were decided before the turn."""
        self.waiting: str | None = None
        """The outcome of its turn, while tasks that it started go on in the background."""
        self.error: str | None = None
        """The CLI's error of a request that failed."""

    @property
    def unanswered(self) -> StepDecision | None:
        """The decision of a call that was not answered: it will be repeated."""
        state = self.session.trace.state
        return state.last if state.pending is None else None

    @property
    def left_at(self) -> Step | None:
        """The step whose decision will be repeated."""
        return None if self.unanswered is None else self.judged

    @property
    def calls_left(self) -> int | None:
        """The requests that the CLI still allows in this turn; None without a limit."""
        return None if self._max_turns is None else self._max_turns - (self.calls - self._turn_began_at)

    async def begin_turn(self, completed: Step | None, said: str = "") -> StepDecision | None:
        """Decide the first request of a turn; return None after a fault. `said` is the user's text in it."""
        self._turn_began_at = self.calls - (self.unanswered is not None)
        return await self.decide(completed, said)

    async def decide(self, completed: Step | None, said: str = "") -> StepDecision | None:
        """Decide the next request; return None after a fault. A decision with a `stop` has ended the run instead.

        `said` is the user's new text in the request.
        """
        self.resulted.clear()
        self.turn_ended, self.waiting = False, None
        with self.session.guard("deciding a call"):
            decision = await adrive(self.session.begin_flow(self._given(completed)))
            self.stop = decision.stop
            self._decided(decision, completed, said)
            return decision
        return None

    async def look_again(self, last: Step) -> StepDecision | None:
        """Decide one more request if the end of the run is in doubt; None if the run ends with its last step."""
        with self.session.guard("taking a second look"):
            decision = await self.session.asecond_look(self._given(last))
            if decision is not None:
                self.turn_ended = False
                self._decided(decision, last)
            return decision
        return None

    def _given(self, completed: Step | None) -> StepInput:
        return StepInput(
            key=call_key(self.session.trace.state),
            completed=completed,
            default_model=self.own_model,
            agent_name=self._agent_name,
            calls_left=self.calls_left,
        )

    def _decided(self, decision: StepDecision, completed: Step | None, said: str = "") -> None:
        self._call = None
        self._tools_begun = {}
        if decision.stop is None:
            self._call = OpenCall(session=self.session, decision=decision, model=self.asked_model)
        self._user_text = user_text([self._user_text, said] if decision.replayed else [said])
        if not decision.replayed:
            self.judged = completed

    def tool_refusal(self, name: str, call_id: str) -> str | None:
        """Return the reason for which a call must not be made; None if it may."""
        self._tools_begun.setdefault(call_id, name)
        earlier = takewhile(lambda begun: begun != call_id, self._tools_begun)
        return self.session.tool_refusal(name, sum(self._tools_begun[begun] == name for begun in earlier))

    async def last_answer(self, seconds: float) -> Answer | None:
        """Return the main agent's answer that is not recorded yet, which may still be on its way."""
        return await self._stream.wait_for_last(self._heard, seconds)

    def heard(self, answer: Answer | None, calls: Iterable[Mapping[str, Any]] = (), said: str = "") -> Step:
        """Record the answer to the request under way, once; return the step that it began, with its tool results.

        Without an answer on the stream, the batch itself has the calls, and the last hook the text that was `said`. A
        request that no hook announced has no decision: its answer is judged, and not recorded.
        """
        known = answer.step if answer else Step(thought=said) if said else None
        step = replace(batch_step(calls, known, self._stream.results), user_text=self._user_text)
        if self._call is not None and (answer is None or answer is not self._heard):
            self._call.model = self.asked_model
            self._call.record(partial(self._outcome, self._call, answer, step))
        self._heard = answer
        return step

    def _outcome(self, call: OpenCall, answer: Answer | None, step: Step) -> StepOutcome:
        latency = call.latency_ms
        if answer is None:
            outcome = StepOutcome(model=call.model, latency_ms=latency, text=step.thought, tool_calls=step.tool_calls)
        else:
            tokens = answer.output_tokens
            outcome = outcome_of(step, answer.messages, model=call.model, output=tokens, latency_ms=latency)
        self.error = None if outcome.error is None else outcome.error.partition(":")[0]
        if (status := self._delivery.refusal(call.decision)) != 0:
            self.session.withdraw(call.decision, status)
        return self._delivery.measured(call.decision, outcome)

    async def ended(self, outcome: str, step: Step | None) -> None:
        """Finish the run: its last answer called no tool, or its last tool results have no answer."""
        with self.session.guard("finishing a run"):
            pending = self.session.trace.state.pending is not None
            await self.session.afinish(outcome, completed=step if pending else None)
        self.waiting = None


class SessionRuns:
    """The main agent's runs, one a prompt, and those of its subagents."""

    def __init__(
        self,
        rb: ReasonBlocks,
        options: RunOptions,
        *,
        model: str | None,
        caps: AdapterCaps,
        delivery: Delivery,
        snapshots: Snapshots | None,
        max_turns: int | None,
    ) -> None:
        self.all: Runs[AgentRun] = Runs(options.run_id)
        self.children: Runs[AgentRun] = Runs()
        self._rb = rb
        self._options = options
        self._caps = caps
        self._delivery = delivery
        self._max_turns = max_turns
        self._snapshots = snapshots if snapshots is not None else kept_by(rb)
        self.connected(model)

    def connected(self, model: str | None) -> None:
        """Begin another session of the CLI; nothing of the previous session is under way in it."""
        self.own_model = model
        self.stream = Stream()
        self.main: AgentRun | None = None
        self._session_id: str | None = None
        self._subagents: Newest[str, AgentRun] = Newest(MAX_AGENTS)
        self._starters: Newest[str, AgentRun] = Newest(MAX_AGENTS)

    def own_model_is(self, model: str | None) -> None:
        """Set the model of calls that are not routed."""
        self.own_model = model
        if self.main is not None and model is not None:
            self.main.own_model = model

    def prompted(self, session_id: str | None, prompt: str) -> AgentRun:
        """Return the run of a prompt: the open one of this session, or a new one.

        A prompt that reports the end of a background task belongs to the run that started the task, unless that run
        was stopped and another one is open.
        """
        self._session_id = session_id
        task_id = task_done(prompt) or ""
        self.stream.prompted(task_id)
        starter = self._starters.get(task_id)
        is_open = self.main is not None and not self.main.over and not self.main.waiting
        if starter is not None and not (starter.stop is not None and is_open):
            self.main = starter
        elif self.main is None or not is_open:
            self.main = self._begun(prompt)
        return self.main

    def resumed(self, session_id: str | None) -> AgentRun | None:
        """Return the run that a resumed session left unfinished."""
        if self.main is None and session_id is not None and session_id in self._snapshots:
            self._session_id = session_id
            self.main = self._begun("")
        return self.main

    def of(self, given: Mapping[str, Any]) -> AgentRun | None:
        """Return the run of the agent that a hook was called for."""
        agent_id = given.get("agent_id")
        if not agent_id:
            return self.main
        return self._subagents.get(str(agent_id)) or self.subagent(given)

    def subagent(self, given: Mapping[str, Any]) -> AgentRun:
        """Begin a subagent's run, within the main agent's."""
        agent_id, kind = str(given.get("agent_id") or ""), str(given.get("agent_type") or "")
        options = replace(self._options, run_id=None, agent_name=None, task=None, model=None)
        session = options.session(
            self._rb,
            framework=FRAMEWORK,
            agent_name=kind,
            model=self.own_model,
            caps=replace(self._caps, routing="none"),
            parent_run_id=self.main.run_id if self.main else None,
            parent_call_id=self.stream.caller_of(agent_id),
            session_id=self._session_id,
        )
        run = AgentRun(session, self.stream, self.own_model or "", kind, self._delivery)
        self._subagents.keep(agent_id, self.children.add(run))
        self.starts(agent_id)
        return run

    def starts(self, task_id: str) -> None:
        """Note a task of the main agent, which may outlast its turn. A subagent's id is that of its task."""
        if self.main is not None and task_id not in self._starters:
            self._starters.keep(task_id, self.main)

    def waits(self, run: AgentRun) -> bool:
        """Return True if tasks of this run work in the background, or their ends are still to be reported."""
        return any(self._starters.get(task_id) is run for task_id in self.stream.to_come)

    def stopped(self, agent_id: str) -> AgentRun | None:
        """Remove and return the run of a subagent that is done."""
        return self._subagents.pop(agent_id, None)

    @property
    def open_subagents(self) -> Iterable[AgentRun]:
        return tuple(self._subagents.values())

    @property
    def waiting(self) -> Iterable[AgentRun]:
        """The runs whose turn is over, though a task of theirs is not."""
        return tuple(run for run in {id(run): run for run in self._starters.values()}.values() if run.waiting)

    def keep(self) -> None:
        """Store the unfinished run's state, for whoever resumes this session; remove that of a finished one."""
        if self.main is None or self._session_id is None:
            return
        if self.main.over:
            self._snapshots.pop(self._session_id, None)
            return
        session, step = self.main.session, self.main.left_at
        kept = {
            "snapshot": session.trace.snapshot(),
            "task": session.run.task,
            "step": None if step is None else step_as_json(step),
        }
        self._snapshots[self._session_id] = kept

    def _begun(self, prompt: str) -> AgentRun:
        """Begin a run, or continue the one that an earlier client left unfinished."""
        kept = self._snapshots.get(self._session_id or "") if self.main is None else None
        session = self._options.session(
            self._rb,
            framework=FRAMEWORK,
            run_id=None if kept else self.all.new_id(),
            task=kept["task"] if kept else prompt,
            model=self.own_model,
            caps=self._caps,
            snapshot=kept["snapshot"] if kept else None,
            session_id=self._session_id,
        )
        name, most = self._options.agent_name, self._max_turns
        run = AgentRun(session, self.stream, self.own_model or "", name, self._delivery, max_turns=most)
        if kept and kept.get("step"):
            run.judged = step_kept(kept["step"])
        return self.all.add(run)


_KEPT: WeakKeyDictionary[ReasonBlocks, Newest[str, Any]] = WeakKeyDictionary()


def kept_by(rb: ReasonBlocks) -> Snapshots:
    """Return the mapping in which a client keeps the states of its newest sessions, by default."""
    return _KEPT.setdefault(rb, Newest(MAX_SESSIONS))


def check(rb: ReasonBlocks, options: RunOptions, caps: AdapterCaps) -> None:
    """Refuse run options where they are given. Raises `ConfigError`."""
    if options.placement is not None and options.placement not in caps.placements:
        have = ", ".join(sorted(caps.placements))
        raise ConfigError("placement", options.placement, f'this mode has {have}; mode="gateway" has system and tail')
    replace(options, placement=None).check(rb)
