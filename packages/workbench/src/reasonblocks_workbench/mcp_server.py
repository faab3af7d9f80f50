"""Serves the tools of codebase memory to an MCP client over stdin and stdout."""

from __future__ import annotations

import asyncio
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from reasonblocks.concurrency.workers import in_daemon
from reasonblocks.memory.tools import MemoryTool, memory_tools

if TYPE_CHECKING:
    from anyio import AsyncFile

    from reasonblocks.memory.memory import CodebaseMemory

INSTRUCTIONS = (
    "Notes that earlier runs stored about this codebase. Recall them before you explore it, store what took effort to "
    "find out, and remove a note that proves to be wrong."
)
"""A text that clients may show to their model."""
ARRIVAL_SECONDS = 0.05
"""The time in which a line that was read arrives at its handler; microseconds are usual."""
LEFT_SECONDS = 1.5
"""The time that running calls have left once the client is gone; clients kill a server after two seconds."""


async def serve_stdio(memory: CodebaseMemory, version: str) -> None:
    """Serve, as this version, until the client closes stdin. Nothing but the protocol is written to stdout."""
    calls: set[asyncio.Task[Any]] = set()
    server = _server(version, memory_tools(memory), calls)
    stdin = BufferedReader(FileIO(0, closefd=False))  # not closed: that would wait for a read
    lines = cast("AsyncFile[str]", _Lines(stdin, calls))  # it is only iterated over
    async with stdio_server(stdin=lines) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class _Lines:
    """The lines of stdin. Unlike those of anyio, a read can be abandoned, so that Ctrl-C ends the server at once."""

    def __init__(self, stdin: BinaryIO, calls: set[asyncio.Task[Any]]) -> None:
        self._stdin, self._calls = stdin, calls

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line = await in_daemon(self._stdin.readline)
        if line:
            return line.decode("utf-8", "replace")
        await asyncio.sleep(ARRIVAL_SECONDS)
        if self._calls:  # the end of the input would cancel them, and their answers would be lost
            await asyncio.wait(self._calls, timeout=LEFT_SECONDS)
        raise StopAsyncIteration


def _server(version: str, tools: tuple[MemoryTool, ...], calls: set[asyncio.Task[Any]]) -> Server[Any]:
    """Return the server of these tools, which adds the tasks of running calls to `calls`."""
    named = {tool.name: tool for tool in tools}
    listed = ListToolsResult(tools=[_described(tool) for tool in tools])

    async def list_tools(context: ServerRequestContext[Any], asked: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(context: ServerRequestContext[Any], asked: CallToolRequestParams) -> CallToolResult:
        if (task := asyncio.current_task()) is not None:
            calls.add(task)
            task.add_done_callback(calls.discard)
        tool = named.get(asked.name)
        if tool is None:
            return _result(f"There is no tool of that name. The tools are {', '.join(named)}.", is_error=True)
        answer = await tool.acall(asked.arguments or {})
        return _result(answer.text, is_error=answer.is_error)

    return Server(
        "reasonblocks",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _described(tool: MemoryTool) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters),
        annotations=ToolAnnotations.model_validate(tool.hints),
    )


def _result(text: str, *, is_error: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
