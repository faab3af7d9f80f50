"""One steered model call: its request, and what becomes of its answer or its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from reasonblocks._session import SteeringSession
from reasonblocks.adapters import failure_of
from reasonblocks.types import StepDecision, StepOutcome

from ._channel import CHANNEL, Carried
from ._convert import outcome_of
from ._models import Routes, model_name, takes_cache_control
from ._request import Overrides, breakpoints, marks_system, steer, without_foreign_thinking
from ._runs import Run

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`name` is the middleware's in the channel, `model` that of what is asked."""

    request: ModelRequest[Any]
    name: str
    carried: Carried
    run: Run
    session: SteeringSession
    decision: StepDecision
    model: str

    def raised(self, error: BaseException, latency_ms: float) -> None:
        """The error is the user's and goes on; the entry keeps it. An interrupt is none: the call comes again."""
        if not isinstance(error, GraphBubbleUp):
            self.session.end_step(self.decision, failure_of(error, model=self.model, latency_ms=latency_ms))

    def answered(
        self, response: ModelResponse[Any], latency_ms: float
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The response, and with it the run's new state for the channel; after a fault the response alone."""
        with self.session.guard("recording an answer"):
            update = {CHANNEL: {self.name: self._after(response, latency_ms)}}
            return ExtendedModelResponse(response, Command(update=update))
        return response

    def _after(self, response: ModelResponse[Any], latency_ms: float) -> Carried:
        """What the channel carries once the answer is recorded."""
        answer = next((message for message in response.result if isinstance(message, AIMessage)), None)
        self.session.end_step(self.decision, self._outcome(answer, latency_ms))
        after: Carried = {
            **self.carried,
            "seen": answer.id if answer else None,
            "snapshot": self.session.trace.snapshot(),
        }
        self.run.hand_out(self.session, self.carried["snapshot"], after["snapshot"])
        return after

    def _outcome(self, answer: AIMessage | None, latency_ms: float) -> StepOutcome:
        with self.session.guard("reading the answer"):
            if answer is not None:
                return outcome_of(answer, model=self.model, latency_ms=latency_ms)
        return StepOutcome(model=self.model, latency_ms=latency_ms)


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes the calls of one middleware. `own_model` is what its caller says the agent's model is called."""

    name: str
    own_model: str | None
    routes: Routes

    def ready(self, decision: StepDecision) -> bool:
        """Whether `made` takes no time: it has no model to build."""
        return decision.route is None or self.routes.ready(decision.route)

    def made(
        self, request: ModelRequest[Any], carried: Carried, run: Run, session: SteeringSession, decision: StepDecision
    ) -> Call:
        own = model_name(request.model)
        model = self._routed(decision, session) or request.model
        messages = request.messages
        if self.routes:
            messages = without_foreign_thinking(messages, model_name(model), own)
        overrides: Overrides = {"model": model, "messages": messages}
        cached = marks_system(decision) and takes_cache_control(model)
        marks = breakpoints(request, messages, model) if cached else 0
        overrides.update(steer(request.system_message, messages, decision, cache_control=cached, breakpoints=marks))
        return Call(
            request=request.override(**overrides),
            name=self.name,
            carried={**carried, "key": decision.key, "model": self.own_model or own},
            run=run,
            session=session,
            decision=decision,
            model=model_name(model),
        )

    def _routed(self, decision: StepDecision, session: SteeringSession) -> BaseChatModel | None:
        if decision.route is None:
            return None
        with session.routing(decision.route):
            return self.routes.model(decision.route)
        return None
