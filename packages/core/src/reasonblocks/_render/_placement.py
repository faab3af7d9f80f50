"""Places guidance in one request (BEHAVIOUR section 7), for every adapter that can edit requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ..types import StepDecision
from ._sanitise import defuse

Block: TypeAlias = Mapping[str, Any]
Content: TypeAlias = "str | Sequence[str | Block] | None"
ContentT = TypeVar("ContentT")
T = TypeVar("T")
CACHED: Mapping[str, str] = {"type": "ephemeral"}
"""The `cache_control` of a cached block."""
MAX_BREAKPOINTS = 4
"""The most blocks with `cache_control` that Anthropic accepts in one request; it rejects a request with more."""
_HOLD_BLOCKS = ("system", "messages", "tools", "content", "source", "extras")
"""Parts of a request that may contain marks; never a tool's arguments, which may have a field of that name."""
NO_TAIL = "the last message of a request cannot hold a text"
ANSWERS = frozenset({"assistant", "model"})
"""The roles of a model's answers, to which nobody may add."""
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "apply_patch_call_output"})
"""Items of OpenAI's Responses API whose `output` is a text, or parts. Those of other tools have a form of their own."""
_DATA = frozenset({"data", "image_url", "file_data", "inlineData", "inline_data"})
"""Fields of a message that hold pictures and files, in which no text is looked for."""
_RESULT_TEXTS = ("output", "result", "content", "error")
"""Fields of a Gemini function's response that hold its text: those that its own clients fill."""


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
    Guidance for the tail goes into the system content if the last message cannot hold it.
    """
    steered: list[T | Block] | None = [*messages]
    if decision.guidance and decision.placement != "system":
        steered = (with_message if decision.placement == "message" else with_tail)(messages, decision.guidance)
    in_system = steered is None or decision.placement == "system"
    marks = count_breakpoints([*messages, *tools]) if cache_control else 0
    content = place(
        system,
        decision.guidance if in_system else "",
        decision.standing_rules,
        cache_control=cache_control,
        breakpoints=marks,
    )
    return content, [*messages] if steered is None else steered


def with_tail(messages: Sequence[T], guidance: str) -> list[T | Block] | None:
    """Return a copy of one call's messages whose last one ends with the guidance; never put it into a history.

    `messages` are those of OpenAI's Chat Completions or Responses API, of Anthropic's, Mistral's or Gemini's API, or of
    a chat template: mappings with a role, or the Responses API's items. The guidance never becomes a message of its
    own, because some of them refuse a user message after a tool's result, or two in a row. It follows the text of the
    last message; among Anthropic's blocks, it is a block after the tool results. Text of that message that looks like
    our frame loses its brackets.

    Returns None if the last message is an answer, or cannot hold a text.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, Mapping):
        return None
    added = _of_item(last, guidance) if "role" not in last else _of_message(last, guidance)
    return None if added is None else [*messages[:-1], added]


def with_message(messages: Sequence[T], guidance: str) -> list[T | Block]:
    """Return a copy of one call's messages with the guidance as a user message of its own at the end.

    If the last message is the user's, the guidance is added to a copy of it, because some providers refuse two in a
    row. Some also refuse a user message after a tool's result.
    """
    last = messages[-1] if messages else None
    joined = with_tail(messages, guidance) if isinstance(last, Mapping) and last.get("role") == "user" else None
    if joined is not None:
        return joined
    of_gemini = isinstance(last, Mapping) and "parts" in last
    return [*messages, {"role": "user", **({"parts": [{"text": guidance}]} if of_gemini else {"content": guidance})}]


def with_guidance(content: ContentT, guidance: str, kind: str = "text") -> ContentT:
    """Return a copy of a message's content, which is text, blocks or None, with the guidance at its end.

    `kind` is the type of the added block. Text that looks like our frame loses its brackets.
    """
    given: Any = defused(content)
    if given is None or isinstance(given, str):
        given = "\n\n".join(filter(None, (given, guidance)))
    else:
        given = [*given, {"type": kind, "text": guidance}]
    joined: ContentT = given
    return joined


def defused(content: ContentT) -> ContentT:
    """Return a message, or its content, without the brackets of text that looks like our frame."""
    given: Any = content
    if isinstance(given, str):
        given = defuse(given)
    elif isinstance(given, Mapping):
        is_text = given.get("type") == "text"  # a document's source, then
        given = {name: part if name in _DATA and not is_text else defused(part) for name, part in given.items()}
    elif isinstance(given, (list, tuple)):
        given = [defused(part) for part in given]
    plain: ContentT = given
    return plain


def _of_item(item: Mapping[str, Any], guidance: str) -> Block | None:
    """Return an item of the Responses API with the guidance."""
    output = item.get("output")
    if item.get("type") not in _RESULTS or not isinstance(output, (str, list, type(None))):
        return None
    return {**item, "output": with_guidance(output, guidance, "input_text")}


def _of_message(message: Mapping[str, Any], guidance: str) -> Block | None:
    if message.get("role") in ANSWERS:
        return None
    if "parts" in message:
        return _of_parts(message, guidance)
    content = message.get("content")
    if content is not None and not isinstance(content, (str, list, tuple)):
        return None
    parts = content if isinstance(content, (list, tuple)) else ()
    is_response = any(isinstance(part, Mapping) and str(part.get("type")).startswith("input_") for part in parts)
    return {**message, "content": with_guidance(content, guidance, "input_text" if is_response else "text")}


def _of_parts(message: Mapping[str, Any], guidance: str) -> Block | None:
    """Return a message of Gemini's API: a turn of functions' responses takes no part of another kind."""
    parts = defused(message["parts"])
    last = parts[-1] if isinstance(parts, list) and parts else None
    if not isinstance(last, Mapping):
        return None
    name = next((name for name in ("functionResponse", "function_response") if name in last), None)
    if name is None:
        return {**message, "parts": [*parts, {"text": guidance}]}
    response = last[name].get("response") or {}
    field = next((field for field in _RESULT_TEXTS if isinstance(response.get(field), str)), None)
    if field is None:
        return None
    told = {**last[name], "response": {**response, field: with_guidance(response[field], guidance)}}
    return {**message, "parts": [*parts[:-1], {**last, name: told}]}


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
