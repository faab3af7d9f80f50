"""Gives sessions the tools of codebase memory, as an MCP server in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, create_sdk_mcp_server
from mcp.types import ToolAnnotations

from reasonblocks import __version__
from reasonblocks.memory import MemoryTool, memory_tools

if TYPE_CHECKING:
    from reasonblocks.memory import CodebaseMemory


def memory_server(memory: CodebaseMemory, name: str = "reasonblocks") -> McpSdkServerConfig:
    """Return an MCP server with the tools `memory_recall`, `memory_store` and `memory_forget` of one codebase.

    Pass it in `ClaudeAgentOptions(mcp_servers={"reasonblocks": server})`. The key of that mapping, here "reasonblocks",
    is part of the names by which `allowed_tools` allows the tools: "mcp__reasonblocks__memory_recall". A call never
    raises: the model reads why it failed. Several sessions may use one server or one memory.
    """
    return create_sdk_mcp_server(name, version=__version__, tools=[_as_sdk_tool(tool) for tool in memory_tools(memory)])


def _as_sdk_tool(tool: MemoryTool) -> SdkMcpTool[Any]:
    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await tool.acall(arguments)
        return {"content": [{"type": "text", "text": answer.text}], "is_error": answer.is_error}

    return SdkMcpTool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        handler=answer,
        annotations=ToolAnnotations.model_validate(tool.hints),
    )
