"""Describes the messages of a request for token saving, with upper bounds of what clients send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from ._parts import RequestPart
from ._sizes import json_bytes

IMAGE_BYTES = 15_000
"""The least bytes of an image: 6,000 tokens at 2.5 bytes each. The provider scales larger images down."""
FILE_BYTES = 500_000
"""The least bytes of a file, a recording or a film: 200,000 tokens, a whole context window."""
WRITTEN = frozenset(
    """text text-plain thinking redacted_thinking reasoning refusal output_text tool_use tool_call tool_call_chunk
    invalid_tool_call function_call server_tool_use server_tool_call non_standard""".split()
)
"""The types of blocks that a model reads as they are written. Any other is at least as large as an image."""
FILES = frozenset("file input_file document audio input_audio video media container_upload".split())


def request_parts(messages: Sequence[AnyMessage], state: Sequence[AnyMessage]) -> list[RequestPart]:
    """Return a request's messages for a plan. A last message that is not in the state as it is, such as one that
    guidance has joined, has no key, since the next request will have it otherwise."""
    parts = [_part(message) for message in messages]
    if messages and not any(
        message.id == messages[-1].id and message.content == messages[-1].content for message in reversed(state)
    ):
        parts[-1] = _part(messages[-1], named=False)
    return parts


def text_of(block: object) -> str | None:
    """Return the text of a text block; None for any other."""
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _part(message: AnyMessage, *, named: bool = True) -> RequestPart:
    texts = (message.content,) if isinstance(message.content, str) else tuple(_texts(message.content))
    key = message.id if named else None
    if isinstance(message, ToolMessage):
        return RequestPart(
            kind="result", key=key, texts=texts, other_bytes=_other_bytes(message) + len(message.tool_call_id),
            is_error=message.status == "error",
        )  # fmt: skip
    if not isinstance(message, AIMessage):
        return RequestPart(key=key, texts=texts, other_bytes=_other_bytes(message))
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return RequestPart(
        kind="answer",
        key=key,
        texts=texts,
        other_bytes=_other_bytes(message) + _bytes_of_calls(message),
        blocks=max(1, len(calls) + (1 if isinstance(message.content, str) else len(message.content))),
    )


def _texts(content: Sequence[object]) -> list[str]:
    return [text for text in map(text_of, content) if text is not None]


def _other_bytes(message: AnyMessage) -> int:
    """Return the size of the blocks that are not text, and of the additional fields, some of which clients send."""
    blocks = [] if isinstance(message.content, str) else message.content
    return sum(map(_bytes_of_block, blocks)) + sum(
        json_bytes(value)
        for name, value in message.additional_kwargs.items()
        if not (name == "tool_calls" and isinstance(message, AIMessage) and message.tool_calls)  # sent once
    )


def _bytes_of_block(block: object) -> int:
    if isinstance(block, str):
        return 0
    kind = block.get("type") if isinstance(block, Mapping) else None
    text = text_of(block)
    if text is not None and isinstance(block, Mapping):
        return json_bytes({name: value for name, value in block.items() if name not in ("type", "text")})
    least = FILE_BYTES if kind in FILES else 0 if kind in WRITTEN else IMAGE_BYTES
    return max(json_bytes(block), least)


def _bytes_of_calls(answer: AIMessage) -> int:
    """Return the size of an answer's calls, as far as its content does not have them as blocks of that size."""
    blocks = [block for block in answer.content if isinstance(block, Mapping)]
    inside = {block.get("call_id") or block.get("id") or "": json_bytes(block) for block in blocks}
    calls: list[Mapping[str, Any]] = [*answer.tool_calls, *answer.invalid_tool_calls]
    return sum(max(0, json_bytes(call) - inside.get(call.get("id"), 0)) for call in calls)
