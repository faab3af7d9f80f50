"""How a decision reaches the model: a hook's answer says it, or a gateway does and the hook says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reasonblocks.adapters import Newest
from reasonblocks.types import StepDecision, StepOutcome

from ._convert import HookOutput, context

MOST_AGENTS = 256


class Delivery(Protocol):
    """What a session needs of the way that its decisions go."""

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        """What the hook of this event, which was given this, answers."""

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        """The outcome with what was measured of the request on its way."""


class HookDelivery:
    """The hooks' own: their text stays in the CLI's transcript, and they see nothing of requests."""

    def __init__(self) -> None:
        self._newest: Newest[str, int] = Newest(MOST_AGENTS)
        """The call that an agent was told something for last: the transcript has it."""

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        agent_id = str(given.get("agent_id") or "")
        if decision is None or (decision.replayed and self._newest.get(agent_id) == decision.step):
            return {}
        self._newest.keep(agent_id, decision.step)
        return context(event, decision)

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        return outcome
