"""The OpenAI Chat Completions API: reads a request, and writes an answer, whole or streamed."""

from __future__ import annotations

import time
from collections.abc import Iterator

from reasonblocks.messages.content import output_of, texts_of
from reasonblocks.types import ToolCall, Usage

from ..script import Turn
from ._asked import Asked, Item, Json, NewId, arguments_text, data_event, pieces, speaker


def items(body: Json) -> Iterator[Item]:
    for message in body.get("messages") or []:
        content = message.get("content")
        if message.get("role") == "tool":
            yield Item(speaker="tool", texts=(output_of(content),), call_id=str(message.get("tool_call_id", "")))
        else:
            yield Item(speaker=speaker(message), texts=tuple(texts_of(content)))


def whole(asked: Asked, turn: Turn, new_id: NewId) -> Json:
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": _message(turn),
                "logprobs": None,
                "finish_reason": "tool_calls" if turn.tool_calls else "stop",
            }
        ],
        "usage": _usage(turn.usage),
        "system_fingerprint": None,
    }


def _message(turn: Turn) -> Json:
    message: Json = {"role": "assistant", "content": turn.text if turn.text or not turn.tool_calls else None}
    message |= {"refusal": None, "annotations": []}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.tool_calls:
        message["tool_calls"] = [_call(call) for call in turn.tool_calls]
    return message


def _call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input or 0,
        "completion_tokens": usage.output or 0,
        "total_tokens": usage.total or 0,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


def events(completion: Json, asked: Asked) -> Iterator[bytes]:
    """Yield the chunks. Usage is sent only if the client requested it, in a separate chunk."""
    with_usage = bool((asked.body.get("stream_options") or {}).get("include_usage"))
    usage: Json = {"usage": None} if with_usage else {}
    chunk = {**completion, "object": "chat.completion.chunk"}
    del chunk["usage"]
    (choice,) = completion["choices"]
    for delta in _deltas(choice["message"]):
        yield data_event({**chunk, "choices": [_choice(delta)], **usage})
    yield data_event({**chunk, "choices": [_choice({}, choice["finish_reason"])], **usage})
    if with_usage:
        yield data_event({**chunk, "choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def _choice(delta: Json, finish_reason: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if message["content"] is None else ""}
    for key in ("reasoning_content", "content"):
        for piece in pieces(message.get(key) or ""):
            yield {key: piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
