"""Matches decisions with the CLI's requests: steers each request on its way, and keeps what was measured of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from reasonblocks.adapters import Newest, ms_since
from reasonblocks.exceptions import Unavailable
from reasonblocks.types import AdapterCaps, StepDecision, StepOutcome

from ..convert import HookOutput, context
from ..hooks import ends_with
from ._meter import Meter
from ._request import Awaited, Headers, steer_request

GATEWAY_CAPS = AdapterCaps(advisor=False, tool_limits=True)
MAX_AGENTS = 256
MAX_SEALS = 4_096
Guard = Callable[[str], AbstractContextManager[None]]


@dataclass(slots=True)
class PendingRequest:
    """The request of a decision: its attempts, and what was measured of its answers."""

    awaited: Awaited
    attempts: int = 0
    output_tokens: int | None = None
    latency_ms: float | None = None
    answered: bool = False
    refusal: int = 0
    """The status with which the provider refused its form, else 0; a refused request is sent again without guidance."""
    began: float = 0.0


@dataclass(slots=True)
class Attempt:
    """An attempt at a request. `body` is sent on; `model` is the model that it names."""

    request: PendingRequest
    body: bytes
    model: str
    meter: Meter | None = field(default=None)


class PendingRequests:
    """The `Delivery` of a gateway: one pending request an agent. Belongs to the session's event loop."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._requests: Newest[str, PendingRequest] = Newest(MAX_AGENTS)
        self._authors: Newest[str, str] = Newest(MAX_SEALS)
        """The model that signed each seal."""
        self._own_model: str | None = None
        """The agent's model, as requests name it: the author of all that was signed before this session."""

    # ------------------------------------------------------------ for the hooks

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        """Return an empty hook answer: guidance for one request must not be in the transcript.

        A second look is an exception: only a text in the hook's answer makes the CLI ask its model again.
        """
        agent_id = str(given.get("agent_id") or "")
        if decision is None:
            self._requests.pop(agent_id, None)
            return {}
        is_look = event == "Stop"
        awaited = Awaited(
            decision=decision,
            agent_id=agent_id,
            call_ids=frozenset(str(call.get("tool_use_id")) for call in given.get("tool_calls") or ()),
            prompt=decision.guidance if is_look else str(given.get("prompt") or ""),
            is_told=is_look or (decision.replayed and ends_with(given.get("transcript_path"), decision.guidance)),
        )
        before = self._requests.get(agent_id)
        if before is not None and (same := awaited.after(before.awaited)) is not awaited:
            before.awaited = same
            self._requests.keep(agent_id, before)
        else:
            self._requests.keep(agent_id, PendingRequest(awaited))
        return context(event, decision) if is_look else {}

    def _of(self, decision: StepDecision) -> PendingRequest | None:
        return next((request for request in self._requests.values() if request.awaited.decision is decision), None)

    def refusal(self, decision: StepDecision) -> int:
        request = self._of(decision)
        return request.refusal if request else 0

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        request = self._of(decision)
        if request is None:
            return outcome
        if not request.attempts:
            with self._guard("the gateway"):
                raise Unavailable("the gateway", "the request that a decision was taken for did not come through it")
            return outcome
        output = request.output_tokens
        return replace(
            outcome,
            attempts=request.attempts,
            latency_ms=outcome.latency_ms if request.latency_ms is None else request.latency_ms,
            usage=outcome.usage if output is None else replace(outcome.usage, output=output),
        )

    # ------------------------------------------------------------ for the gateway

    def take(self, body: bytes, headers: Headers) -> Attempt | None:
        """Return the request to send, if a decision was taken for it. Raises `ValueError` for what is no JSON."""
        waiting = [request for request in self._requests.values() if not request.answered]
        if not waiting:
            return None
        sent = json.loads(body)
        request = next((request for request in waiting if request.awaited.is_in(sent, headers)), None)
        if request is None:
            return None
        model, decision = str(sent.get("model")), request.awaited.decision
        if decision.route is None and not request.awaited.agent_id:
            self._own_model = model
        told = replace(decision, guidance="") if request.awaited.is_told or request.refusal else decision
        changed = steer_request(sent, told, lambda seal: self._author(seal, model) != model)
        request.began = request.began or time.perf_counter()
        request.attempts += 1
        # ASCII: half of a surrogate pair, which JavaScript sends, has no UTF-8
        return Attempt(request, body if changed is sent else json.dumps(changed, separators=(",", ":")).encode(), model)

    def heard(self, attempt: Attempt) -> None:
        """Update the measurements after more of an answer has passed, or it has ended."""
        request, meter = attempt.request, attempt.meter
        request.latency_ms = ms_since(request.began)
        if meter is None:
            return
        request.output_tokens, request.answered = meter.output_tokens, meter.complete
        for seal in meter.seals:
            self._authors.keep(seal, attempt.model)
        meter.seals.clear()

    def _author(self, seal: str, model: str) -> str:
        return self._authors.get(seal) or self._own_model or model
