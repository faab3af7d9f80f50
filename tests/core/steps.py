"""Makes steps by hand, for all tests of the core."""

from __future__ import annotations

from typing import Any

from reasonblocks.types import Step, ToolCall, ToolResult


def acted(
    tool: str, arguments: Any = "", output: str = "", *, is_error: bool | None = None, thought: str = "", **more: Any
) -> Step:
    """One step with one call and its result; `call_id` and `user_text` among `more`."""
    call_id = more.pop("call_id", "c")
    return Step(
        thought=thought,
        tool_calls=(ToolCall(id=call_id, name=tool, arguments=arguments),),
        tool_results=(ToolResult(call_id=call_id, output=output, name=tool, is_error=is_error),),
        **more,
    )
