"""How a decision reaches the model: a hook's answer says it, or a gateway does and the hook says nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from reasonblocks.adapters import Newest
from reasonblocks.types import StepDecision, StepOutcome

from ._convert import HookOutput, context

MAX_AGENTS = 256
TAIL = 262_144
"""Bytes of a transcript that are looked at: what was said for the newest request stands at its end."""


class Delivery(Protocol):
    """What a session needs of the way that its decisions go."""

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        """What the hook of this event, which was given this, answers."""

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        """The outcome with what was measured of the request on its way."""


def ends_with(transcript: object, text: str) -> bool:
    """Whether the text is among the last that the CLI has written down."""
    said = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    with suppress(OSError), open(str(transcript or ""), "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        return bool(text) and said in file.read()
    return False


class HookDelivery:
    """The hooks' own: their text stays in the CLI's transcript, and they see nothing of requests."""

    def __init__(self) -> None:
        self._newest: Newest[str, int] = Newest(MAX_AGENTS)
        """The call that an agent was told something for last: the transcript has it."""

    def deliver(self, event: str, given: Mapping[str, Any], decision: StepDecision | None) -> HookOutput:
        agent_id = str(given.get("agent_id") or "")
        if decision is None or (decision.replayed and self._has_told(agent_id, given, decision)):
            return {}
        self._newest.keep(agent_id, decision.step)
        return context(event, decision)

    def _has_told(self, agent_id: str, given: Mapping[str, Any], decision: StepDecision) -> bool:
        """Whether the transcript has it, of this session or of the one that is resumed."""
        told = self._newest.get(agent_id) == decision.step
        return told or ends_with(given.get("transcript_path"), decision.guidance)

    def measured(self, decision: StepDecision, outcome: StepOutcome) -> StepOutcome:
        return outcome
