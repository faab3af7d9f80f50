"""Reads content blocks of the Anthropic Messages API: dictionaries, or the blocks of the Claude Agent SDK.

The source of the rules is the API reference, "Messages", unless a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..types import Step, ToolCall, ToolResult, Usage
from . import first_int, get, plain
from .content import output_of

Block: TypeAlias = Any
"""A content block: `{"type": ..., ...}`, or an object of the Claude Agent SDK."""
SDK_TYPES = {"TextBlock": "text", "ThinkingBlock": "thinking", "ToolUseBlock": "tool_use"}
"""The `type` of the Claude Agent SDK's classes (`claude_agent_sdk.types`), whose objects have no such field."""
SEALED = {"thinking": "signature", "redacted_thinking": "data"}
"""Block types that only the model that wrote them accepts back, and the field that identifies the block."""


def kind(block: Block) -> str:
    """Return the block's `type`."""
    return str(get(block, "type") or SDK_TYPES.get(type(block).__name__, ""))


def blocks_of(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return a message's `content` as blocks; a text is one `text` block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in (content if isinstance(content, Sequence) else ()) if isinstance(block, Mapping)]


def answer_of(blocks: Iterable[Block]) -> Step:
    """Return the step that an answer's `content` began.

    Server tools (`server_tool_use`) are left out: the API runs them, and their results are no text.
    """
    given = list(blocks)
    return Step(
        thought=_joined(given, "text"),
        reasoning=_joined(given, "thinking"),
        tool_calls=tuple(_call(block) for block in given if kind(block) == "tool_use"),
    )


def _joined(blocks: Iterable[Block], name: str) -> str:
    """Join the texts of one kind of block, whose type and field have the same name."""
    return "\n".join(str(text) for block in blocks if kind(block) == name and (text := get(block, name)))


def _call(block: Block) -> ToolCall:
    name = str(get(block, "name") or "")
    return ToolCall(id=str(get(block, "id") or ""), name=tool_name(name), arguments=plain(get(block, "input")))


def result_of(block: Block) -> ToolResult:
    """Return a `tool_result` block as a result. It names the call, not the tool; `is_error` is absent on success."""
    return ToolResult(
        call_id=str(get(block, "tool_use_id") or ""),
        name="",
        output=output_of(get(block, "content")),
        is_error=True if get(block, "is_error") else None,
    )


def usage_of(usage: Mapping[str, Any] | None) -> Usage:
    """Return the tokens of an answer's `usage`.

    The API counts cached tokens apart from `input_tokens`; ours includes them. In a `message_start` event, and in the
    Claude Agent SDK's `AssistantMessage`, `output_tokens` is only a start value.
    """
    read, written = first_int(usage, "cache_read_input_tokens"), first_int(usage, "cache_creation_input_tokens")
    whole = (first_int(usage, "input_tokens") or 0) + (read or 0) + (written or 0)
    return Usage(input=whole or None, output=first_int(usage, "output_tokens"), cache_read=read, cache_write=written)


def seals_of(blocks: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what identifies sealed thinking: its signature, or its redacted data."""
    for block in blocks:
        seal = block.get(SEALED.get(str(block.get("type")), ""))
        if isinstance(seal, str) and seal:
            yield seal


def tool_name(name: str) -> str:
    """Return a tool's name without its MCP server's: "mcp__tests__run" is "run".

    Source: Claude Code's naming of MCP tools; every other framework uses the server's own name.
    """
    parts = name.split("__", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "mcp" and parts[2] else name
