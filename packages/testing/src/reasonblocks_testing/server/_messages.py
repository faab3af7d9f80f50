"""The Anthropic Messages API: reads a request, and writes an answer, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reasonblocks.messages.anthropic import blocks_of, result_of
from reasonblocks.messages.content import texts_of
from reasonblocks.types import Usage

from ..script import Turn
from ._asked import Asked, Item, Json, NewId, named_event, pieces, speaker

CHARS_PER_TOKEN = 4
"""Characters per token, roughly, for requests for a token count."""


def items(body: Json) -> Iterator[Item]:
    if body.get("system"):
        yield Item(speaker="system", texts=tuple(texts_of(body["system"])))
    for message in body.get("messages") or []:
        yield from _results(message)
        found = tuple(texts_of(message.get("content")))
        if found or message.get("role") != "user":
            yield Item(speaker=speaker(message), texts=found)


def _results(message: Json) -> Iterator[Item]:
    """Yield the tool results, which precede a message's texts (the API refuses another order)."""
    for block in blocks_of(message):
        if block.get("type") == "tool_result":
            result = result_of(block)
            yield Item(speaker="tool", texts=(result.output,), call_id=result.call_id)


def count_response(body: Json) -> Json:
    """Return the response to a request for a token count."""
    chars = sum(len(text) for item in items(body) for text in item.texts)
    return {"input_tokens": chars // CHARS_PER_TOKEN + 1}


def whole(asked: Asked, turn: Turn, new_id: NewId) -> Json:
    return {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": list(_content(turn, new_id)),
        "stop_reason": "tool_use" if turn.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(turn.usage),
    }


def _content(turn: Turn, new_id: NewId) -> Iterator[Json]:
    """Yield the blocks; none without text, which the API refuses when a client sends it back."""
    if turn.reasoning:
        yield {"type": "thinking", "thinking": turn.reasoning, "signature": new_id("sig")}
    if turn.text:
        yield {"type": "text", "text": turn.text}
    for call in turn.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _usage(usage: Usage) -> Json:
    """Return the usage; this API's `input_tokens` do not include cached tokens."""
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return {
        "input_tokens": max(0, (usage.input or 0) - read - written),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"thinking_tokens": usage.reasoning or 0},
    }


def events(message: Json, asked: Asked) -> Iterator[bytes]:
    yield from map(named_event, _events(message))


def _events(message: Json) -> Iterator[Json]:
    start = {**message["usage"], "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**message, "content": [], "stop_reason": None, "usage": start},
    }
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _begun(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _begun(block: Json) -> Json:
    empty: dict[str, Json] = {
        "thinking": {"thinking": "", "signature": ""},
        "text": {"text": ""},
        "tool_use": {"input": {}},
    }
    return {**block, **empty[block["type"]]}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "tool_use":
        for piece in pieces(json.dumps(block["input"], ensure_ascii=False)):
            yield {"type": "input_json_delta", "partial_json": piece}
        return
    key = block["type"]
    for piece in pieces(block[key]):
        yield {"type": f"{key}_delta", key: piece}
    if key == "thinking":
        yield {"type": "signature_delta", "signature": block["signature"]}
