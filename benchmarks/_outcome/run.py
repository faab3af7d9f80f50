"""One run of an agent in an environment, steered by the library's own session; it can be branched at a state."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from zlib import crc32

from reasonblocks import Budget, ReasonBlocks, SteeringSession
from reasonblocks.advisors.asking import INSTRUCTIONS, advice_in, question
from reasonblocks.engine.routing import ESCALATE
from reasonblocks.monitors.sightings import OWN_MEMORY
from reasonblocks.monitors.untried import alternatives
from reasonblocks.render.guidance import guidance
from reasonblocks.types import (
    Advice,
    AdviceRequest,
    Step,
    StepDecision,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
    TraceState,
)

from .arms import ARMS, Arm, Moment, placed
from .backend import Backend, Message, Query, Reply
from .clients import ADVISOR, client_for
from .environment import Environment, Limited, Reopening, ToolError
from .policies import close
from .rows import Made, Phase, Row, Told

NO_CALL = "Call one of the tools."
RULES = "E3Injection"
"""The source of standing rules."""
ALWAYS = (RULES, "BudgetInjection")
"""The sources of texts that are told as they are, also by an arm that does not steer."""
LOOK = "second look"

Factory = Callable[[], Environment]


class NotRepeatable(Exception):
    """An environment gave another result to the same calls, so its runs cannot be branched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a run is about: all arms of one seed share it."""

    family: str
    seed: int
    factory: Factory
    model: str
    through: str = "loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The state before the first text of a shadow run: its calls so far, and what was found."""

    calls: tuple[Made, ...]
    kind: str | None
    monitor: str | None
    winnable: bool | None = None


@dataclass(slots=True, kw_only=True)
class _Counts:
    prompt: int = 0
    cached: int | None = 0
    completion: int = 0


@dataclass
class Run:
    """A run: ask for its next `query`, and let it `take` the reply, until it is `over`."""

    setting: Setting
    arm: Arm
    sample: int
    phase: Phase
    start: Point | None = None
    client: ReasonBlocks = field(init=False)
    environment: Environment = field(init=False)
    over: bool = field(init=False, default=False)
    point: Point | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.client = client_for(self.arm, branch=self.start is not None)
        self.environment = self.setting.factory()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        task = self._task = self.environment.reset(self.setting.seed)
        self._messages: list[Message] = [
            {"role": "system", "content": self.environment.system},
            {"role": "user", "content": task},
        ]
        self._calls: list[Made] = []
        self._told: list[Told] = []
        self._counts = _Counts()
        self._completed: Step | None = None
        self._decision: StepDecision | None = None
        self._strong = 0
        self._ended = False
        self._error: str | None = None
        if self.start is not None:
            self._replay(self.start.calls)
        self._session = self._new_session(self._snapshot() if self.start else None)

    def _new_session(self, snapshot: Mapping[str, Any] | None) -> SteeringSession:
        budget = None
        if self.arm.budget is not None:
            budget = Budget(calls=self.environment.max_steps, every_call=self.arm.budget == "every call")
        return self.client.session(task=self._task, agent_name=self.setting.family, budget=budget, snapshot=snapshot)

    def _replay(self, calls: tuple[Made, ...]) -> None:
        for made in calls:
            if not made.name:
                self._answered(made.thought)
                continue
            output, is_error = self._make(made.name, made.arguments)
            if (output, is_error) != (made.output, made.is_error):
                raise NotRepeatable(
                    f"{self.setting.family}, seed {self.setting.seed}: {made.name}({made.arguments}) gave"
                    f" {made.output!r:.80} and now {output!r:.80}; a run can only be branched if the same calls give"
                    " the same results after the same reset, and if the task is what it was in its shadow run"
                )
            self._remember(made)

    def _snapshot(self) -> Mapping[str, Any]:
        """Return what the shadow run's session knew at the branch point, from its calls."""
        session = client_for(ARMS["off"], branch=True).session(task=self._task, agent_name=self.setting.family)
        completed: Step | None = None
        for at, made in enumerate(self._calls):
            decision = session.begin_step(StepInput(completed=completed, default_model=self.setting.model))
            assert not decision.injections, "nothing is said before the branch point"
            completed = made_step(made, at)
            outcome = StepOutcome(model=self.setting.model, text=made.thought, tool_calls=completed.tool_calls)
            session.end_step(decision, outcome)
        session.pause()  # or the client would take it for a run that is still open
        return session.trace.snapshot()

    def query(self, lane: int, backend: Backend | None = None) -> Query:
        """Return the next model call; `backend` answers for an advisor."""
        before = self._session.trace.state
        asking = ADVISOR.set(None if backend is None else partial(self._advised, backend, lane))
        try:
            decision = self._decision = self._session.begin_step(self._given)
        finally:
            ADVISOR.reset(asking)
        speaker = _speaker(self._session, decision)
        if self.point is None and self.start is None and speaker is not None:
            self.point = Point(calls=tuple(self._calls), kind=decision.finding_kind, monitor=speaker)
        text = self._text(decision)
        if self._waits and decision.injections:
            _unsay(self._session, before)
        messages = self._messages
        if decision.standing_rules:
            messages = placed(messages, decision.standing_rules, "system")
        choices = self.environment.choices() if isinstance(self.environment, Limited) else {}
        return Query(
            messages=placed(messages, text, "message" if self._looks(decision) else self.arm.place),
            tools=self.environment.tools,
            lane=lane,
            seed=self._seed(),
            choices=choices,
            strong=decision.route == ESCALATE,
        )

    def _advised(self, backend: Backend, lane: int, request: AdviceRequest) -> Advice | None:
        """Ask the stronger model, or the agent's own, what to try next; it counts as read and written by the run."""
        messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question(request)}]
        asked = Query(messages=messages, tools=(), lane=lane, seed=self._seed(), strong=True)
        (reply,) = backend.complete([asked])
        self._count(reply)
        return advice_in(reply.text, reply.prompt + reply.completion)

    def _looks(self, decision: StepDecision) -> bool:
        return decision.step == self._session.trace.state.second_look

    @property
    def _given(self) -> StepInput:
        return StepInput(completed=self._completed, default_model=self.setting.model)

    @property
    def _waits(self) -> bool:
        """True from the first finding on, until the arm's wait is over."""
        first = self.start or self.point
        return self.arm.steers and first is not None and len(self._calls) < len(first.calls) + self.arm.wait

    def _seed(self) -> int:
        """Return the sampling seed of this call, equal in all arms."""
        at = (self.setting.family, self.setting.seed, self.sample, len(self._calls))
        return crc32(repr(at).encode())

    def _text(self, decision: StepDecision) -> str:
        looks = self._looks(decision)
        shown = [item for item in decision.injections if self.arm.steers or looks or item.source in ALWAYS]
        if not shown or self.phase == "shadow" or self._waits:
            return ""
        if self.arm.most is not None and len(self._told) >= self.arm.most:
            return ""
        as_it_is = looks or all(item.source in ALWAYS for item in shown)
        text = guidance(shown) if as_it_is else self.arm.text(self._moment(decision))
        if text:
            speaker = None if as_it_is else _speaker(self._session, decision)
            kind = decision.finding_kind if speaker is not None else None
            sources = (LOOK,) if looks else tuple([item.source for item in shown])
            told = Told(step=len(self._calls), text=text, monitor=speaker, kind=kind, sources=sources)
            self._told.append(told)
        return text

    def _moment(self, decision: StepDecision) -> Moment:
        memories = self._session._state.memories
        found = alternatives(memories.get(OWN_MEMORY), len(self._calls) - 1)
        return Moment(decision, self.environment, found, frozenset(made.name for made in self._calls))

    def take(self, reply: Reply) -> None:
        """Make the reply's call, and remember what came back."""
        assert self._decision is not None
        self._count(reply)
        self._strong += self._decision.route == ESCALATE
        if reply.call is None or not reply.call.name:
            self._session.end_step(self._decision, StepOutcome(model=self.setting.model, text=reply.text))
            self._answered(reply.text)
        else:
            name, arguments = reply.call.name, dict(reply.call.arguments)
            call = ToolCall(id=f"call-{len(self._calls)}", name=name, arguments=arguments)
            outcome = StepOutcome(model=self.setting.model, text=reply.text, tool_calls=(call,))
            self._session.end_step(self._decision, outcome)
            output, is_error = self._make(name, arguments)
            self._remember(Made(name=name, arguments=arguments, output=output, is_error=is_error, thought=reply.text))
        exhausted = len(self._calls) >= self.environment.max_steps
        self._ended = self.environment.done and (exhausted or not self._look_again())
        self.over = self._ended or exhausted
        if self.over:
            self._finish()

    def _count(self, reply: Reply) -> None:
        counts = self._counts
        counts.prompt += reply.prompt
        counts.completion += reply.completion
        counts.cached = None if counts.cached is None or reply.cached is None else counts.cached + reply.cached

    def fail(self, error: Exception) -> None:
        """End the run with an error. Its row is kept, and the run is made again another time."""
        self._error, self.over = f"{type(error).__name__}: {error}", True
        self._session.finish("failure: error")

    def _make(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        try:
            return self.environment.call(name, arguments), False
        except ToolError as error:
            return f"Error: {error}", True

    def _answered(self, text: str) -> None:
        self._messages += [{"role": "assistant", "content": text}, {"role": "user", "content": NO_CALL}]
        made = Made(name="", arguments={}, output="", thought=text)
        self._completed = made_step(made, len(self._calls))
        self._calls.append(made)

    def _remember(self, made: Made) -> None:
        call_id = f"call-{len(self._calls)}"
        function = {"name": made.name, "arguments": json.dumps(made.arguments, ensure_ascii=False)}
        self._messages += [
            {
                "role": "assistant",
                "content": made.thought,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": made.output},
        ]
        self._completed = made_step(made, len(self._calls))
        self._calls.append(made)

    def _look_again(self) -> bool:
        """Take the agent's own end back, once, if it gets a second look; the next request has the text."""
        if not isinstance(self.environment, Reopening) or self._session.second_look(self._given) is None:
            return False
        self.environment.reopen()
        return True

    def _finish(self) -> None:
        self._session.finish("success" if self.environment.success() else "failure", completed=self._completed)

    def row(self) -> Row:
        """Return what is kept of this run. Its environment must still be open."""
        counts, point = self._counts, self.start or self.point
        return Row(
            model=self.setting.model,
            through=self.setting.through,
            phase=self.phase,
            family=self.setting.family,
            seed=self.setting.seed,
            arm=self.arm.name,
            sample=self.sample,
            won=self.environment.success(),
            ended=self._ended,
            steps=len(self._calls),
            point=len(point.calls) if point else None,
            kind=point.kind if point else None,
            monitor=point.monitor if point else None,
            winnable=point.winnable if point else None,
            prompt=counts.prompt,
            evaluated=None if counts.cached is None else counts.prompt - counts.cached,
            completion=counts.completion,
            told=tuple(self._told),
            calls=tuple(self._calls),
            strong=self._strong,
            error=self._error,
        )

    def close(self) -> None:
        """Release the environment, whether or not the run is over."""
        close(self.environment)


def made_step(made: Made, at: int) -> Step:
    """Return call number `at` of a run as the library's step."""
    if not made.name:
        return Step(thought=made.thought)
    call = ToolCall(id=f"call-{at}", name=made.name, arguments=made.arguments)
    result = ToolResult(call_id=call.id, name=made.name, output=made.output, is_error=made.is_error)
    return Step(thought=made.thought, tool_calls=(call,), tool_results=(result,))


def _speaker(session: SteeringSession, decision: StepDecision) -> str | None:
    """Return the monitor that speaks in this decision, the newest one; None if only lessons or rules do."""
    injected = session.trace.state.injected
    return injected[-1].monitor if injected and injected[-1].step == decision.step else None


def _unsay(session: SteeringSession, before: TraceState) -> None:
    """Let the session forget what its newest decision says, so that the monitors say it when the wait is over.

    A session has no public way to take an injection back, because an agent cannot unread it: only here is it not shown.
    """
    session._state = replace(
        session.trace.state,
        injected=before.injected,
        injected_text=before.injected_text,
        injected_types=before.injected_types,
        patterns_shown=before.patterns_shown,
        sent=before.sent,
        e1=before.e1,
        e2=before.e2,
    )
