"""Where guidance stands in one request (BEHAVIOUR section 7). Shared by every adapter that can edit requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Block: TypeAlias = Mapping[str, Any]
Content: TypeAlias = "str | Sequence[str | Block] | None"
CACHED: Mapping[str, str] = {"type": "ephemeral"}
MOST_BREAKPOINTS = 4
"""Blocks with `cache_control` that Anthropic takes in one request: with one more it refuses the whole."""
_HOLD_BLOCKS = ("system", "messages", "tools", "content", "source", "extras")
"""Parts of a request in which marks stand; never what a tool is called with, which may have a field of that name."""


def place(
    base: Content, guidance: str, standing_rules: str = "", *, cache_control: bool, breakpoints: int = 0
) -> Content:
    """The content of one call's system message.

    `base` is the agent's own: text, content blocks, or None. With `cache_control` (Anthropic models only) the base is
    a cached block on every call and the guidance a second block without; it is not marked when it has a mark, or
    when the rest of the request holds as many `breakpoints` as it may. Otherwise text stays one plain string.
    Gives `base` itself back when there is nothing to change, None when there is nothing at all.
    """
    if cache_control:
        return _blocks(base, guidance, standing_rules, marked=breakpoints < MOST_BREAKPOINTS) or None
    if not guidance and not standing_rules:
        return base
    if base is None or isinstance(base, str):
        return "\n\n".join(part for part in (base, standing_rules, guidance) if part)
    return [*base, *_texts(standing_rules, guidance)]


def count_breakpoints(part: object) -> int:
    """How many blocks with `cache_control` a request to Anthropic, or a part of it, holds: tools and results too.

    The request's own, by which the API marks a block itself, is one of them.
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
