"""Which request of the CLI a decision was taken for, and what it then says. Pure: what it changes, it copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reasonblocks import _render as render
from reasonblocks.types import StepDecision

Body: TypeAlias = Mapping[str, Any]
"""A request to `/v1/messages`, whose shape is the provider's own."""
Headers: TypeAlias = Mapping[str, str]
AGENT = "x-claude-code-agent-id"
"""Names the subagent that asks; the main agent sends none."""
CLASS = "x-claude-code-request-class"
"""What a request is for. The CLI sends it to few providers only."""
SIDE_CLASSES = frozenset({"compaction", "auxiliary", "side_reply"})
SIDE_PROMPTS = (
    "Your task is to create a detailed summary of",
    "CRITICAL: Respond with TEXT ONLY.",
    "[SUGGESTION MODE:",
    "Describe your most recent action",
)
"""How the CLI begins what it asks of a copy of the conversation, as 2.1.330 does: summaries, suggestions, progress."""
PROMPT_CHARS = 200
"""Enough of a prompt to know it again: the CLI may put something after it."""
SEALED = {"thinking": "signature", "redacted_thinking": "data"}
"""Blocks that only their author takes back, and the field that they are known by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """The request that a decision was taken for, told by what is new in it: a batch's results, or a prompt.

    With neither it is the first request of a subagent.
    """

    decision: StepDecision
    agent_id: str = ""
    call_ids: frozenset[str] = frozenset()
    prompt: str = ""

    def after(self, before: Awaited | None) -> Awaited:
        """With what was awaited before, if it is the same request: a prompt may come while tools run."""
        if before is None or before.decision.step != self.decision.step or not self.decision.replayed:
            return self
        return Awaited(
            decision=self.decision,
            agent_id=self.agent_id,
            call_ids=self.call_ids or before.call_ids,
            prompt=self.prompt or before.prompt,
        )

    def is_in(self, body: Body, headers: Headers) -> bool:
        """Whether this is the request, or that request once more."""
        asking, new = headers.get(AGENT, ""), newest(body)
        if is_side(body, headers):
            return False
        if self.call_ids and self.call_ids <= set(_answered(new)):
            return asking in ("", self.agent_id)
        if self.prompt:
            return asking == self.agent_id and _says(new, self.prompt)
        return not self.call_ids and asking == self.agent_id and len(new) == len(body.get("messages") or ())


def is_side(body: Body, headers: Headers) -> bool:
    """What the CLI asks for itself: probes, titles, summaries. An agent's own requests have tools."""
    if headers.get(CLASS) in SIDE_CLASSES or not body.get("tools") or body.get("max_tokens") == 1:
        return True
    return any(text.lstrip().startswith(SIDE_PROMPTS) for text in _texts(newest(body)))


def newest(body: Body) -> Sequence[Body]:
    """What was said since the model's last answer."""
    messages: Sequence[Body] = body.get("messages") or ()
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    return messages[answers[-1] + 1 :] if answers else messages


def steered(body: Body, decision: StepDecision, is_foreign: Callable[[str], bool]) -> Body:
    """The request with its guidance, and without thinking that others signed; the same object if nothing changes.

    No breakpoint of ours: the CLI sets its own, at most four to a request, and none when caching is switched off.
    """
    in_system = decision.placement == "system"
    own = body.get("system")
    system = render.place(own, decision.guidance if in_system else "", decision.standing_rules, cache_control=False)
    messages: Sequence[Body] = body.get("messages") or ()
    kept = without_foreign_thinking(messages, is_foreign)
    if decision.guidance and not in_system:
        kept = with_tail(kept, decision.guidance)
    if system is own and kept is messages:
        return body
    return {**body, **({} if system is own else {"system": system}), "messages": kept}


def with_tail(messages: Sequence[Body], text: str) -> Sequence[Body]:
    """The messages with `text` as the last block of the last user message; what the CLI says after that stays there."""
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    if not users:
        return messages
    last = messages[users[-1]]
    joined = {**last, "content": [*_blocks(last), {"type": "text", "text": text}]}
    return [*messages[: users[-1]], joined, *messages[users[-1] + 1 :]]


def without_foreign_thinking(messages: Sequence[Body], is_foreign: Callable[[str], bool]) -> Sequence[Body]:
    """The messages without the thinking whose seal is foreign; the same object when there is none.

    An answer that was nothing else is left out: an empty one is refused.
    """
    if not any(is_foreign(seal) for message in messages for seal in seals(_blocks(message))):
        return messages
    stripped = [_without(message, is_foreign) for message in messages]
    return [message for message in stripped if message.get("content")]


def seals(blocks: Sequence[Body]) -> Iterator[str]:
    """What sealed thinking is known by: its signature, or its redacted data."""
    for block in blocks:
        seal = block.get(SEALED.get(str(block.get("type")), ""))
        if isinstance(seal, str) and seal:
            yield seal


def _without(message: Body, is_foreign: Callable[[str], bool]) -> Body:
    blocks = _blocks(message)
    kept = [block for block in blocks if not any(map(is_foreign, seals([block])))]
    return message if len(kept) == len(blocks) else {**message, "content": kept}


def _blocks(message: Body) -> Sequence[Body]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, Mapping)]


def _answered(messages: Sequence[Body]) -> Iterator[str]:
    """The calls whose results these messages carry."""
    for message in messages:
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                yield str(block.get("tool_use_id"))


def _texts(messages: Sequence[Body]) -> Iterator[str]:
    for message in messages:
        for block in _blocks(message):
            if block.get("type") == "text":
                yield str(block.get("text"))


def _says(messages: Sequence[Body], prompt: str) -> bool:
    """Whether the prompt is there, or the command that the CLI has made of it."""
    said = [*_texts(messages)]
    wanted = "<command-name>" if prompt.startswith("/") else prompt.strip()[:PROMPT_CHARS]
    return any(wanted in text for text in said)
