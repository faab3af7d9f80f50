"""One steered agent of a session: its run, from each request's decision to the run's end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from reasonblocks._session import SteeringSession
from reasonblocks.adapters import HeldRun, call_key, ms_since
from reasonblocks.types import Step, StepDecision, StepInput, StepOutcome

from ._convert import batch_step, outcome_of
from ._delivery import Delivery, HookDelivery
from ._stream import Answer, Stream


class AgentRun(HeldRun):
    """The run of the main agent for one prompt, or of one subagent."""

    def __init__(
        self,
        session: SteeringSession,
        stream: Stream,
        own_model: str,
        agent_name: str | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        super().__init__(session)
        self.own_model = own_model
        self.asked_model = own_model
        self._stream = stream
        self._delivery = delivery or HookDelivery()
        self._agent_name = agent_name
        self.judged: Step | None = None
        """What the newest request follows, which the stream does not tell again when a session is resumed."""
        self._decision: StepDecision | None = None
        self._waits = False
        """Whether a request that was decided has no answer yet."""
        self._asked = time.perf_counter()
        self._heard: Answer | None = None
        """The answer that is recorded already."""
        self.resulted = asyncio.Event()
        """Whether the turn's result is in, and what it means for the run is said."""
        self.stopped = False
        """Whether the agent has said its last: the result is on its way."""
        self.waiting: str | None = None
        """How its turn ended, while tasks that it started go on in the background."""
        self.error: str | None = None
        """What the CLI says of a request that failed."""

    @property
    def unanswered(self) -> StepDecision | None:
        """The decision of the call that the run was left at: it will be taken again."""
        state = self.session.trace.state
        return state.last if state.pending is None else None

    @property
    def left_at(self) -> Step | None:
        """The step whose decision is taken again."""
        return None if self.unanswered is None else self.judged

    async def decide(self, completed: Step | None) -> StepDecision | None:
        """What the next request gets; None after a fault."""
        self.resulted.clear()
        self.stopped, self.waiting = False, None
        with self.session.guard("deciding a call"):
            given = StepInput(
                key=call_key(self.session.trace.state),
                completed=completed,
                default_model=self.own_model,
                agent_name=self._agent_name,
            )
            self._decision = await self.session.abegin_step(given)
            self._waits, self._asked = True, time.perf_counter()
            if not self._decision.replayed:
                self.judged = completed
            return self._decision
        return None

    def heard(self, answer: Answer | None, calls: Iterable[Mapping[str, Any]] = (), said: str = "") -> Step:
        """The answer to the request under way, once; and the step that it began, with what its tools gave back.

        Where the stream has not told of it, the batch itself says what was called, and the last hook what was `said`. A
        request that no hook announced has no decision: its answer is judged, and not recorded.
        """
        known = answer.step if answer else Step(thought=said) if said else None
        step = batch_step(calls, known, self._stream.results)
        if self._waits and (answer is None or answer is not self._heard):
            with self.session.guard("recording an answer"):
                self._record(answer, step)
        self._heard = answer
        return step

    def _record(self, answer: Answer | None, step: Step) -> None:
        assert self._decision is not None  # whoever waits has one
        self._waits = False
        latency = ms_since(self._asked)
        if answer is None:
            outcome = StepOutcome(
                model=self.asked_model, latency_ms=latency, text=step.thought, tool_calls=step.tool_calls
            )
        else:
            outcome = outcome_of(
                step, answer.messages, model=self.asked_model, output=answer.output_tokens, latency_ms=latency
            )
        self.error = None if outcome.error is None else outcome.error.partition(":")[0]
        self.session.end_step(self._decision, self._delivery.measured(self._decision, outcome))

    async def ended(self, outcome: str, step: Step | None) -> None:
        """The run is done; its last answer called no tool, or nothing was answered to what its tools gave."""
        with self.session.guard("finishing a run"):
            pending = self.session.trace.state.pending is not None
            await self.session.afinish(outcome, completed=step if pending else None)
        self.waiting = None
