"""Places guidance in one request (BEHAVIOUR section 7), for every adapter that can edit requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from ..types import StepDecision
from .sanitise import defuse

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
_DATA = frozenset(
    """base64 blob bytes data document_url file_data file_url image_url inlineData inline_data input_audio""".split()
)
"""Fields of a message's parts that hold pictures and files, in which no text is looked for."""
_OF_RESPONSES = frozenset({"input_text", "input_image", "input_file"})
"""Types of the parts of a message in OpenAI's Responses API."""
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
    Guidance for the tail goes into the system content if the last message cannot hold it: if `has_tail` returns False,
    call `session.without_tail(decision)` before, so that the log says so.
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


def has_tail(messages: Sequence[object]) -> bool:
    """Return True if the last message can hold guidance: see `with_tail`."""
    last = messages[-1] if messages else None
    return isinstance(last, Mapping) and _field_of(last) is not None


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
    where = _field_of(last) if isinstance(last, Mapping) else None
    if where is None or not isinstance(last, Mapping):
        return None
    field, kind = where
    told = _with_part(last[field], guidance) if field == "parts" else with_guidance(last.get(field), guidance, kind)
    return [*messages[:-1], {**last, field: told}]


def with_message(messages: Sequence[T], guidance: str) -> list[T | Block]:
    """Return a copy of one call's messages with the guidance as a user message of its own at the end.

    If the last message is the user's, the guidance is added to a copy of it, because some providers refuse two in a
    row. Some also refuse a user message after a tool's result.
    """
    last = messages[-1] if messages else None
    joined = with_tail(messages, guidance) if isinstance(last, Mapping) and last.get("role") == "user" else None
    if joined is not None:
        return joined
    if has_tail(messages):  # an answer stays as it is: its thinking may be signed
        messages = [*messages[:-1], *map(defuse_frames, messages[-1:])]
    of_gemini = isinstance(last, Mapping) and "parts" in last
    return [*messages, {"role": "user", **({"parts": [{"text": guidance}]} if of_gemini else {"content": guidance})}]


def with_guidance(content: ContentT, guidance: str, kind: str = "text") -> ContentT:
    """Return a copy of a message's content, which is text, blocks or None, with the guidance at its end.

    `kind` is the type of the added block. Text that looks like our frame loses its brackets.
    """
    given: Any = defuse_frames(content)
    if given is None or isinstance(given, str):
        given = "\n\n".join(filter(None, (given, guidance)))
    else:
        given = [*given, {"type": kind, "text": guidance}]
    joined: ContentT = given
    return joined


def defuse_frames(content: ContentT) -> ContentT:
    """Return a message, or its content, without the brackets of text that looks like our frame."""
    given: Any = content
    if isinstance(given, str):
        given = defuse(given)
    elif isinstance(given, Mapping):
        is_text = given.get("type") == "text"  # a document's source, then
        given = {name: part if name in _DATA and not is_text else defuse_frames(part) for name, part in given.items()}
    elif isinstance(given, (list, tuple)):
        given = [defuse_frames(part) for part in given]
    plain: ContentT = given
    return plain


def _field_of(message: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field of a message that can hold guidance, and the type of a block in it; None if there is none."""
    if "role" not in message:  # an item of the Responses API
        holds = message.get("type") in _RESULTS and isinstance(message.get("output"), (str, list, type(None)))
        return ("output", "input_text") if holds else None
    if message["role"] in ANSWERS:
        return None
    if "parts" in message:
        return None if _last_part(message["parts"]) is None else ("parts", "")
    content = message.get("content")
    if not isinstance(content, (str, list, tuple, type(None))):
        return None
    parts = content if isinstance(content, (list, tuple)) else ()
    kinds = {part.get("type") if isinstance(part, Mapping) else "text" for part in parts}
    if None in kinds:  # parts of another API, such as Bedrock's
        return None
    return "content", "text" if kinds.isdisjoint(_OF_RESPONSES) and message.get("type") is None else "input_text"


def _last_part(parts: object) -> tuple[str, str] | None:
    """Return the names of the function response that ends a message of Gemini's API, and of its text.

    Both are "" for a last part of another kind; None if there is no part, or no text in the response.
    """
    last = parts[-1] if isinstance(parts, (list, tuple)) and parts else None
    if not isinstance(last, Mapping):
        return None
    name = next((name for name in ("functionResponse", "function_response") if last.get(name) is not None), "")
    response = last[name].get("response") if name and isinstance(last[name], Mapping) else None
    if not name or not isinstance(response, Mapping):
        return None if name else ("", "")
    field = next((field for field in _RESULT_TEXTS if isinstance(response.get(field), str)), None)
    return None if field is None else (name, field)


def _with_part(parts: Sequence[Any], guidance: str) -> list[Any]:
    """Return the parts with guidance: a turn of functions' responses takes no part of another kind."""
    name, field = _last_part(parts) or ("", "")
    if not name:
        return [*defuse_frames(list(parts)), {"text": guidance}]
    given = parts[-1][name]
    response = {
        key: defuse_frames(value) for key, value in given["response"].items()
    }  # a field of any name may be text
    told = {**given, "response": {**response, field: with_guidance(given["response"][field], guidance)}}
    return [*defuse_frames(list(parts[:-1])), {**parts[-1], name: told}]


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
