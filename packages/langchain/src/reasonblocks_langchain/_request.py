"""Applies a decision to one LangChain request. Pure: it changes copies only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from reasonblocks import render
from reasonblocks.adapters import same_model
from reasonblocks.engine.routing import attribute
from reasonblocks.messages.langchain import model_of
from reasonblocks.render.placement import ANSWERS
from reasonblocks.types import StepDecision

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.language_models import BaseChatModel

Content: TypeAlias = "str | list[str | dict[Any, Any]]"
_OWN_RESULTS = frozenset({"computer_call_output", "custom_tool_call_output"})
"""The types of results of OpenAI's own tools."""
MAX_WRAPPED = 8
"""The most bindings around a model that are searched."""


class Overrides(TypedDict, total=False):
    """The arguments of `ModelRequest.override`."""

    model: BaseChatModel
    system_message: SystemMessage
    messages: list[AnyMessage]
    model_settings: dict[str, Any]


def steer(
    system: SystemMessage | None,
    messages: Sequence[AnyMessage],
    decision: StepDecision,
    *,
    cache_control: bool,
    merges: bool = False,
    breakpoints: int = 0,
) -> Overrides:
    """Return the changes to this call's request; empty if there are none.

    `merges` is True for Anthropic's models, whose client turns tool results and a message after them into one message:
    in it, the guidance is a block after the results. `breakpoints` is the number of blocks with `cache_control` that
    the rest of the request holds.
    """
    in_system = decision.placement == "system"
    overrides: Overrides = {}
    base = system.content if system else None
    content = render.place(
        base,
        decision.guidance if in_system else "",
        decision.standing_rules,
        cache_control=cache_control and marks_system(decision),
        breakpoints=breakpoints,
    )
    if content is not None and content is not base:
        overrides["system_message"] = _system(system, cast("Content", content))
    if decision.guidance and not in_system:
        own = decision.placement == "message" or merges
        overrides["messages"] = (with_message if own else with_tail)(messages, decision.guidance)
    return overrides


def has_tail(messages: Sequence[AnyMessage]) -> bool:
    """Return True if the last message can hold guidance: no answer, and no result of a tool of OpenAI's own.

    Of those, LangChain sends one block, or takes the text for a picture.
    """
    last = messages[-1] if messages else None
    if last is None or isinstance(last, AIMessage) or attribute(last, "role") in ANSWERS:
        return False
    if last.additional_kwargs.get("type") in _OWN_RESULTS:
        return False
    blocks = (block for block in last.content if isinstance(block, dict)) if isinstance(last.content, list) else ()
    return not any(_OWN_RESULTS & {block.get("type"), _inner_type(block)} for block in blocks)


def _inner_type(block: Mapping[str, Any]) -> object:
    """Return the type of the provider's own block within a standard one."""
    value = block.get("value")
    return value.get("type") if isinstance(value, Mapping) else None


def breakpoints(request: ModelRequest[Any], messages: Sequence[AnyMessage], model: object) -> int:
    """Count them outside the system message: in messages, tools, and what the call or the model adds to the request."""
    tools = (tool if isinstance(tool, Mapping) else {"extras": attribute(tool, "extras")} for tool in request.tools)
    parts = [*tools, request.model_settings, *_added_by(model)]
    return sum(map(_of_message, messages)) + sum(map(render.count_breakpoints, parts))


def _of_message(message: AnyMessage) -> int:
    """Count a message's marks; LangChain moves those within a tool's output to the output as a whole."""
    found = render.count_breakpoints(message.content)
    return min(found, 1) if isinstance(message, ToolMessage) else found


def _added_by(model: object) -> Iterator[object]:
    """Yield the keywords that a model sends with every request: its own and its bound ones."""
    for _ in range(MAX_WRAPPED):
        yield attribute(model, "model_kwargs")
        yield attribute(model, "kwargs")
        if (model := attribute(model, "bound")) is None:
            return


def marks_system(decision: StepDecision) -> bool:
    """Return True if the system message has text of ours, so that it may need a breakpoint of the prompt cache."""
    return decision.placement == "system" or bool(decision.standing_rules)


def with_tail(messages: Sequence[AnyMessage], text: str) -> list[AnyMessage]:
    """Return the messages with `text` at the end of a copy of the last one, whose own text is defused."""
    last = messages[-1]
    return [*messages[:-1], last.model_copy(update={"content": render.with_guidance(last.content, text)})]


def with_message(messages: Sequence[AnyMessage], text: str) -> list[AnyMessage]:
    """Return the messages with `text` as a human message, after the newest tool results, whose text is defused.

    It is added to a last human message, because some providers refuse two in a row.
    """
    if messages and isinstance(messages[-1], HumanMessage):
        return with_tail(messages, text)
    at = len(messages)
    while at and isinstance(messages[at - 1], ToolMessage):
        at -= 1
    results = (
        message.model_copy(update={"content": render.defuse_frames(message.content)}) for message in messages[at:]
    )
    return [*messages[:at], *results, HumanMessage(content=text)]


def without_foreign_thinking(messages: list[AnyMessage], model: str, own: str) -> list[AnyMessage]:
    """Return the messages without thinking that another model signed; the same list if there is none.

    `own` is the agent's model: the author of every answer that names no model.
    """
    if not any(_is_foreign(message, model, own) for message in messages):
        return messages
    kept = (_without_thinking(one) if _is_foreign(one, model, own) else one for one in messages)
    return [message for message in kept if message is not None]


def _is_foreign(message: AnyMessage, model: str, own: str) -> bool:
    """Return True if the message contains thinking that another model signed."""
    return (
        isinstance(message, AIMessage)
        and isinstance(message.content, list)
        and any(map(_is_sealed, message.content))
        and not same_model(model_of(message) or own, model)
    )


def _without_thinking(message: AnyMessage) -> AnyMessage | None:
    """Return the message without its thinking; None if nothing is left, since providers refuse an empty message."""
    content = [block for block in message.content if not _is_sealed(block)]
    if not content and not (isinstance(message, AIMessage) and message.tool_calls):
        return None
    return message.model_copy(update={"content": content})


def _is_sealed(block: str | dict[Any, Any]) -> bool:
    """Return True for thinking that only its author accepts back: signed, redacted or encrypted."""
    if isinstance(block, str):
        return False
    kind = block.get("type")
    if kind not in ("thinking", "reasoning", "reasoning_content"):
        return kind == "redacted_thinking"
    extras = block.get("extras")
    marks = {**block, **(extras if isinstance(extras, Mapping) else {})}
    return any(marks.get(key) for key in ("signature", "encrypted_content", "thought_signature"))


def _system(own: SystemMessage | None, content: Content) -> SystemMessage:
    return SystemMessage(content=content) if own is None else own.model_copy(update={"content": content})
