"""Finds the CLI's request that a decision belongs to, and applies it. Pure: it changes copies only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reasonblocks import render
from reasonblocks.messages.anthropic import blocks_of, seals_of
from reasonblocks.types import StepDecision

Body: TypeAlias = Mapping[str, Any]
"""A request to `/v1/messages`, or a message in it."""
Headers: TypeAlias = Mapping[str, str]
AGENT = "x-claude-code-agent-id"
"""The header that names the requesting subagent; the main agent sends none."""
CLASS = "x-claude-code-request-class"
"""The header with a request's purpose. The CLI sends it to few providers only."""
SIDE_CLASSES = frozenset({"compaction", "auxiliary", "side_reply"})
SIDE_PROMPTS = (
    "Your task is to create a detailed summary of",
    "CRITICAL: Respond with TEXT ONLY.",
    "[SUGGESTION MODE:",
    "Describe your most recent action",
)
"""Beginnings of the CLI's own prompts (2.1.330), sent with a copy of the conversation: summaries, suggestions."""
PROMPT_CHARS = 200
"""Enough of a prompt to recognise it: the CLI may append to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """The request that a decision belongs to, identified by its new part: a batch's results, or a prompt.

    Without either, it is a subagent's first request.
    """

    decision: StepDecision
    agent_id: str = ""
    call_ids: frozenset[str] = frozenset()
    prompt: str = ""
    is_told: bool = False
    """True if the CLI's transcript has the guidance, so that the request has it, too."""

    def after(self, before: Awaited | None) -> Awaited:
        """Add the identification of `before`, if it is the same request: a prompt may arrive while tools run."""
        if before is None or before.decision.step != self.decision.step or not self.decision.replayed:
            return self
        return Awaited(
            decision=self.decision,
            agent_id=self.agent_id,
            call_ids=self.call_ids or before.call_ids,
            prompt=self.prompt or before.prompt,
            is_told=self.is_told or before.is_told,
        )

    def is_in(self, body: Body, headers: Headers) -> bool:
        """Return True if this is the request, or a repetition of it."""
        asking, new = headers.get(AGENT, ""), newest(body)
        if is_side(body, headers):
            return False
        if self.call_ids and self.call_ids <= set(_answered(new)):
            return asking in ("", self.agent_id)
        if self.prompt:
            return asking == self.agent_id and _says(new, self.prompt)
        return not self.call_ids and asking == self.agent_id and len(new) == len(body.get("messages") or ())


def is_side(body: Body, headers: Headers) -> bool:
    """Return True for the CLI's own requests: probes, titles, summaries. An agent's requests have tools."""
    if headers.get(CLASS) in SIDE_CLASSES or not body.get("tools") or body.get("max_tokens") == 1:
        return True
    return any(text.lstrip().startswith(SIDE_PROMPTS) for text in _texts(newest(body)))


def newest(body: Body) -> Sequence[Body]:
    """Return the messages after the model's last answer."""
    messages: Sequence[Body] = body.get("messages") or ()
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    return messages[answers[-1] + 1 :] if answers else messages


def steer_request(body: Body, decision: StepDecision, is_foreign: Callable[[str], bool]) -> Body:
    """Return the request with its guidance, and without other models' thinking; the same object if nothing changes.

    It gets no cache breakpoint of ours: the CLI sets up to four itself, and none if caching is switched off.
    """
    messages: Sequence[Body] = body.get("messages") or ()
    kept = without_foreign_thinking(messages, is_foreign)
    told = None
    if decision.guidance and decision.placement != "system":
        told = with_tail(kept, decision.guidance)
    own = body.get("system")
    guidance = decision.guidance if told is None else ""
    system = render.place(own, guidance, decision.standing_rules, cache_control=False)
    kept = kept if told is None else told
    if system is own and kept is messages:
        return body
    return {**body, **({} if system is own else {"system": system}), "messages": kept}


def with_tail(messages: Sequence[Body], text: str) -> Sequence[Body] | None:
    """Return the messages with `text` as last block of the last user message; None if there is no user message.

    Later messages, which are the CLI's own, are unchanged.
    """
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    if not users:
        return None
    last = messages[users[-1]]
    joined = {**last, "content": render.with_guidance(blocks_of(last), text)}
    return [*messages[: users[-1]], joined, *messages[users[-1] + 1 :]]


def without_foreign_thinking(messages: Sequence[Body], is_foreign: Callable[[str], bool]) -> Sequence[Body]:
    """Return the messages without thinking whose seal is foreign; the same object if there is none.

    An answer that held nothing else is left out, since the API refuses an empty one.
    """
    if not any(is_foreign(seal) for message in messages for seal in seals_of(blocks_of(message))):
        return messages
    stripped = [_without(message, is_foreign) for message in messages]
    return [message for message in stripped if message.get("content")]


def _without(message: Body, is_foreign: Callable[[str], bool]) -> Body:
    blocks = blocks_of(message)
    kept = [block for block in blocks if not any(map(is_foreign, seals_of([block])))]
    return message if len(kept) == len(blocks) else {**message, "content": kept}


def _answered(messages: Sequence[Body]) -> Iterator[str]:
    """Yield the ids of the calls whose results these messages contain."""
    for message in messages:
        for block in blocks_of(message):
            if block.get("type") == "tool_result":
                yield str(block.get("tool_use_id"))


def _texts(messages: Sequence[Body]) -> Iterator[str]:
    for message in messages:
        for block in blocks_of(message):
            if block.get("type") == "text":
                yield str(block.get("text"))


def _says(messages: Sequence[Body], prompt: str) -> bool:
    """Return True if the messages contain the prompt, or the command that the CLI turned it into."""
    wanted = "<command-name>" if prompt.startswith("/") else prompt.strip()[:PROMPT_CHARS]
    return any(wanted in text for text in _texts(messages))
