"""Says in one LangChain request what a decision says. Pure: what it changes, it copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from reasonblocks import render
from reasonblocks.types import StepDecision

from ._convert import Content, producer_of
from ._models import same_model

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class Overrides(TypedDict, total=False):
    """What `ModelRequest.override` takes."""

    model: BaseChatModel
    system_message: SystemMessage
    messages: list[AnyMessage]


def steer(
    system: SystemMessage | None, messages: Sequence[AnyMessage], decision: StepDecision, *, cache_control: bool
) -> Overrides:
    """What this call's request carries beyond the agent's own; empty when it is left as it is."""
    in_system = decision.placement == "system"
    overrides: Overrides = {}
    base = system.content if system else None
    content = render.place(
        base,
        decision.guidance if in_system else "",
        decision.standing_rules,
        cache_control=cache_control and (in_system or bool(decision.standing_rules)),
    )
    if content is not None and content is not base:
        overrides["system_message"] = _system(system, cast("Content", content))
    if decision.guidance and not in_system:
        overrides["messages"] = with_tail(messages, decision.guidance)
    return overrides


def with_tail(messages: Sequence[AnyMessage], text: str) -> list[AnyMessage]:
    """The messages with `text` as the last thing that is read.

    After a human message it joins a copy of it, since some providers refuse two in a row; after anything else it is a
    human message of its own, so that it never looks like the output of a tool.
    """
    last = messages[-1] if messages else None
    if not isinstance(last, HumanMessage):
        return [*messages, HumanMessage(content=text)]
    joined = f"{last.content}\n\n{text}" if isinstance(last.content, str) else [*last.content, _text_block(text)]
    return [*messages[:-1], last.model_copy(update={"content": joined})]


def without_foreign_thinking(messages: list[AnyMessage], model: str, own: str) -> list[AnyMessage]:
    """The messages without the thinking that another model signed; the same list when there is none.

    `own` is the agent's model: the author of every answer that does not say its own.
    """
    kept = [_without_thinking(message) if _is_foreign(message, model, own) else message for message in messages]
    if all(new is old for new, old in zip(kept, messages)):
        return messages
    return [message for message in kept if message is not None]


def _is_foreign(message: AnyMessage, model: str, own: str) -> bool:
    return isinstance(message, AIMessage) and not same_model(producer_of(message) or own, model)


def _without_thinking(message: AnyMessage) -> AnyMessage | None:
    """None when nothing else was in it: providers refuse an empty message."""
    if isinstance(message.content, str):
        return message
    content = [block for block in message.content if not (isinstance(block, Mapping) and _is_signed(block))]
    if len(content) == len(message.content):
        return message
    if not content and not (isinstance(message, AIMessage) and message.tool_calls):
        return None
    return message.model_copy(update={"content": content})


def _is_signed(block: Mapping[Any, Any]) -> bool:
    """Thinking that only its author accepts back: signed, redacted or encrypted."""
    if block.get("type") == "redacted_thinking":
        return True
    extras = block.get("extras")
    marks = {**block, **(extras if isinstance(extras, Mapping) else {})}
    return block.get("type") in ("thinking", "reasoning", "reasoning_content") and any(
        marks.get(key) for key in ("signature", "encrypted_content", "thought_signature")
    )


def _system(own: SystemMessage | None, content: Content) -> SystemMessage:
    return SystemMessage(content=content) if own is None else own.model_copy(update={"content": content})


def _text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
