"""The OpenAI Responses API: reads a request, and writes an answer, whole or streamed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

from reasonblocks.messages.content import output_of, texts_of
from reasonblocks.messages.openai import call_id_of, is_output
from reasonblocks.types import Usage

from ..script import Turn
from ._asked import Asked, Item, Json, NewId, arguments_text, named_event, pieces, speaker


def items(body: Json) -> Iterator[Item]:
    if body.get("instructions"):
        yield Item(speaker="system", texts=(str(body["instructions"]),))
    given = body.get("input") or []
    if isinstance(given, str):
        yield Item(speaker="user", texts=(given,))
    else:
        yield from map(_item, given)


def _item(given: Json) -> Item:
    if "role" in given:
        return Item(speaker=speaker(given), texts=tuple(texts_of(given.get("content"))))
    if is_output(given):
        return Item(speaker="tool", texts=(output_of(given.get("output")),), call_id=call_id_of(given))
    return Item(speaker="model")  # reasoning, calls, and references to them


def whole(asked: Asked, turn: Turn, new_id: NewId) -> Json:
    body = asked.body
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "model": asked.model,
        "output": list(_output(turn, new_id)),
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "conversation": _conversation(body),
        "temperature": body.get("temperature", 1.0),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p", 1.0),
        "metadata": body.get("metadata", {}),
        "usage": _usage(turn.usage),
    }


def chains(body: Json) -> tuple[str | None, str | None]:
    """Return the ids of the response and of the conversation that a request continues."""
    return body.get("previous_response_id"), (_conversation(body) or {}).get("id")


def _conversation(body: Json) -> Json | None:
    given = body.get("conversation")
    return {"id": given} if isinstance(given, str) else given


def _output(turn: Turn, new_id: NewId) -> Iterator[Json]:
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        yield {"type": "reasoning", "id": new_id("rs"), "summary": summary}
    if turn.text or not turn.tool_calls:
        content = [{"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}]
        yield {
            "type": "message",
            "id": new_id("msg"),
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    for call in turn.tool_calls:
        yield {
            "type": "function_call",
            "id": new_id("fc"),
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_text(call.arguments),
            "status": "completed",
        }


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input or 0,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.total or 0,
    }


def events(response: Json, asked: Asked) -> Iterator[bytes]:
    numbers = count()
    for event in _events(response):
        yield named_event({**event, "sequence_number": next(numbers)})


def _events(response: Json) -> Iterator[Json]:
    begun = {**response, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        for event in _PARTS[item["type"]](item):
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _begun(item: Json) -> Json:
    empty: dict[str, Json] = {
        "reasoning": {"summary": []},
        "message": {"content": [], "status": "in_progress"},
        "function_call": {"arguments": "", "status": "in_progress"},
    }
    return {**item, **empty[item["type"]]}


def _reasoning_events(item: Json) -> Iterator[Json]:
    for index, part in enumerate(item["summary"]):
        at = {"summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
        for delta in pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": delta}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}


def _message_events(item: Json) -> Iterator[Json]:
    for index, part in enumerate(item["content"]):
        at: Json = {"content_index": index}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for delta in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": delta, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}


def _call_events(item: Json) -> Iterator[Json]:
    for delta in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": delta}
    yield {
        "type": "response.function_call_arguments.done",
        "name": item["name"],
        "arguments": item["arguments"],
    }


_PARTS: dict[str, Any] = {
    "reasoning": _reasoning_events,
    "message": _message_events,
    "function_call": _call_events,
}
