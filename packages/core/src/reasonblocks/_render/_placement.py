"""Places guidance in one request (BEHAVIOUR section 7), for every adapter that can edit requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ..types import StepDecision

Block: TypeAlias = Mapping[str, Any]
Content: TypeAlias = "str | Sequence[str | Block] | None"
T = TypeVar("T")
CACHED: Mapping[str, str] = {"type": "ephemeral"}
"""The `cache_control` of a cached block."""
MAX_BREAKPOINTS = 4
"""The most blocks with `cache_control` that Anthropic accepts in one request; it rejects a request with more."""
_HOLD_BLOCKS = ("system", "messages", "tools", "content", "source", "extras")
"""Parts of a request that may contain marks; never a tool's arguments, which may have a field of that name."""


def place(
    base: Content, guidance: str, standing_rules: str = "", *, cache_control: bool, breakpoints: int = 0
) -> Content:
    """Return the content of one call's system message.

    `base` is the agent's own: text, content blocks, or None. With `cache_control` (Anthropic models only) the base is
    a cached block on every call, and the guidance a second block that is not cached. The base gets no mark if it has
    one, or if the rest of the request has as many `breakpoints` as it may. Otherwise text stays one plain string.
    Returns `base` itself if there is nothing to change, None if there is nothing at all.
    """
    if cache_control:
        return _blocks(base, guidance, standing_rules, marked=breakpoints < MAX_BREAKPOINTS) or None
    if not guidance and not standing_rules:
        return base
    if base is None or isinstance(base, str):
        return "\n\n".join(part for part in (base, standing_rules, guidance) if part)
    return [*base, *_texts(standing_rules, guidance)]


def steered_request(
    decision: StepDecision,
    system: Content,
    messages: Sequence[T],
    *,
    cache_control: bool = False,
    tools: Sequence[object] = (),
) -> tuple[Content, list[T | Block]]:
    """Return the system content and the messages of one call, with the guidance placed as the decision says.

    For a loop over a chat API. The result is for this one request: keep building the history from `messages`. With
    `cache_control`, the marks of messages and `tools` count towards the four that Anthropic accepts in one request.
    """
    at_tail = decision.placement == "tail"
    guidance = "" if at_tail else decision.guidance
    marks = count_breakpoints([*messages, *tools]) if cache_control else 0
    return (
        place(system, guidance, decision.standing_rules, cache_control=cache_control, breakpoints=marks),
        with_tail(messages, decision.guidance if at_tail else ""),
    )


def with_tail(messages: Sequence[T], guidance: str) -> list[T | Block]:
    """Return a copy of one call's messages that ends with the guidance; never put the copy into a history.

    `messages` are those of a chat API: objects with `role` and `content`. If the last message is the user's, the
    guidance is appended to a copy of it, since some providers refuse two in a row, after anything that has to be first
    (an Anthropic tool result). Otherwise it is a separate user message, so that it never looks like a tool's output.
    """
    if not guidance:
        return [*messages]
    last = messages[-1] if messages else None
    if not isinstance(last, Mapping) or last.get("role") != "user":
        return [*messages, {"role": "user", "content": guidance}]
    content = last.get("content")
    if not isinstance(content, Sequence) or isinstance(content, str):
        return [*messages[:-1], {**last, "content": "\n\n".join(filter(None, (content, guidance)))}]
    block = _text(guidance)
    if any(isinstance(part, Mapping) and str(part.get("type")).startswith("input_") for part in content):
        block = {**block, "type": "input_text"}  # the name in OpenAI's Responses API
    return [*messages[:-1], {**last, "content": [*content, block]}]


def count_breakpoints(part: object) -> int:
    """Count the blocks with `cache_control` in a request to Anthropic, or a part of one: tools and results too.

    The request's own `cache_control`, by which the API marks a block itself, counts as one.
    """
    if isinstance(part, Mapping):
        within = sum(count_breakpoints(part[name]) for name in _HOLD_BLOCKS if name in part)
        return within + bool(part.get("cache_control"))
    return sum(map(count_breakpoints, part)) if isinstance(part, (list, tuple)) else 0


def _blocks(base: Content, guidance: str, standing_rules: str, *, marked: bool) -> list[str | Block]:
    own = [*_texts(base)] if base is None or isinstance(base, str) else list(base)
    own += _texts(standing_rules)
    if marked and own and not any(isinstance(block, Mapping) and "cache_control" in block for block in own):
        last = own[-1]
        own[-1] = {**(_text(last) if isinstance(last, str) else last), "cache_control": dict(CACHED)}
    return [*own, *_texts(guidance)]


def _texts(*texts: str | None) -> list[str | Block]:
    return [_text(text) for text in texts if text]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
