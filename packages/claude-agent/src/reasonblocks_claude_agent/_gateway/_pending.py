"""Holds, for each agent of a session, the decision whose request is still to come, and what became of that request."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from reasonblocks._json import evolve
from reasonblocks.adapters import Newest, ms_since
from reasonblocks.exceptions import Unavailable
from reasonblocks.types import AdapterCaps, StepDecision, StepOutcome

from ._convert import HookOutput
from ._meter import Meter
from ._request import Awaited, Headers, steered

GATEWAY_CAPS = AdapterCaps()
MAX_AGENTS = 256
MAX_SEALS = 4_096
Guard = Callable[[str], AbstractContextManager[None]]


@dataclass(slots=True)
class Asked:
    """A decision's request: how often it came, and what its answers told."""

    awaited: Awaited
    attempts: int = 0
    output_tokens: int | None = None
    latency_ms: float | None = None
    answered: bool = False
    began: float = 0.0


@dataclass(slots=True)
class Attempt:
    """One time that it came. `body` is what goes out; `model` is the one that it asks."""

    asked: Asked
    body: bytes
    model: str
    meter: Meter | None = field(default=None)


class Desk:
    """The `Delivery` of a gateway. Belongs to the session's event loop."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._asked: Newest[str, Asked] = Newest(MAX_AGENTS)
        self._authors: Newest[str, str] = Newest(MAX_SEALS)
        """By seal, the model that signed it."""
        self._own_model: str | None = None
        """The agent's, as requests name it: the author of all that was signed before this session."""

    # ------------------------------------------------------------ for the hooks

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        """The hook itself says nothing: what the model never sees again must not be in the transcript."""
        agent_id = str(given.get("agent_id") or "")
        if decision is None:
            self._asked.pop(agent_id, None)
            return {}
        awaited = Awaited(
            decision=decision,
            agent_id=agent_id,
            call_ids=frozenset(str(one.get("tool_use_id")) for one in given.get("tool_calls") or ()),
            prompt=str(given.get("prompt") or ""),
        )
        before = self._asked.get(agent_id)
        if before is not None and (same := awaited.after(before.awaited)) is not awaited:
            before.awaited = same
            self._asked.keep(agent_id, before)
        else:
            self._asked.keep(agent_id, Asked(awaited))
        return {}

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        asked = next((one for one in self._asked.values() if one.awaited.decision is decision), None)
        if asked is None:
            return outcome
        if not asked.attempts:
            with self._guard("the gateway"):
                raise Unavailable("the gateway", "the request that a decision was taken for did not come through it")
            return outcome
        output = asked.output_tokens
        return evolve(
            outcome,
            attempts=asked.attempts,
            latency_ms=outcome.latency_ms if asked.latency_ms is None else asked.latency_ms,
            usage=outcome.usage if output is None else evolve(outcome.usage, output=output),
        )

    # ------------------------------------------------------------ for the gateway

    def take(self, body: bytes, headers: Headers) -> Attempt | None:
        """The request as it goes out, if a decision was taken for it. Raises `ValueError` for what is no JSON."""
        waiting = [one for one in self._asked.values() if not one.answered]
        if not waiting:
            return None
        sent = json.loads(body)
        asked = next((one for one in waiting if one.awaited.is_in(sent, headers)), None)
        if asked is None:
            return None
        model, decision = str(sent.get("model")), asked.awaited.decision
        if decision.route is None and not asked.awaited.agent_id:
            self._own_model = model
        said = steered(sent, decision, lambda seal: self._author(seal, model) != model)
        asked.began = asked.began or time.perf_counter()
        asked.attempts += 1
        # ASCII: half of a surrogate pair, which JavaScript sends, has no UTF-8
        return Attempt(asked, body if said is sent else json.dumps(said, separators=(",", ":")).encode(), model)

    def heard(self, attempt: Attempt) -> None:
        """More of its answer has passed, or it has ended."""
        asked, meter = attempt.asked, attempt.meter
        asked.latency_ms = ms_since(asked.began)
        if meter is None:
            return
        asked.output_tokens, asked.answered = meter.output_tokens, meter.complete
        for seal in meter.seals:
            self._authors.keep(seal, attempt.model)
        meter.seals.clear()

    def _author(self, seal: str, asked: str) -> str:
        return self._authors.get(seal) or self._own_model or asked
