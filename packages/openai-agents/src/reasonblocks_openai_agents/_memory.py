"""Makes tools of the OpenAI Agents SDK from the tools of codebase memory."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from agents import FunctionTool, Tool
from agents.tool_context import ToolContext

from reasonblocks.memory import MemoryTool


def openai_tool(tool: MemoryTool) -> Tool:
    async def invoke(_: ToolContext[Any], arguments: str) -> str:
        return (await tool.acall(arguments)).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=deepcopy(dict(tool.parameters)),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # strict mode has no optional arguments
    )
