"""Serves the tools of codebase memory to an MCP client over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from anyio import BrokenResourceError, CancelScope, ClosedResourceError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    JSONRPCError,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from reasonblocks.concurrency.workers import in_daemon
from reasonblocks.memory.tools import MemoryTool, memory_tools

from .mcp_lines import LINE_BYTES, TOO_LONG, refusals

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup  # a requirement of anyio's there

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
    """Serve, as this version, until the client closes stdin. Nothing but the protocol is written to stdout.

    The process's other output to stdout goes to stderr from now on. Raises `OSError` if stdout cannot be written, such
    as `BrokenPipeError` once the client is gone.
    """
    calls: set[asyncio.Task[Any]] = set()
    server = _server(version, memory_tools(memory), calls)

    async def refuse(error: JSONRPCError) -> None:
        with suppress(BrokenResourceError, ClosedResourceError):  # the session has ended
            await writing.send(SessionMessage(error))

    with CancelScope() as scope:
        answers = _Answers(_moved_stdout(), scope.cancel)
        lines = _Lines(
            BufferedReader(FileIO(0, closefd=False)), calls, refuse
        )  # not closed: that would wait for a read
        stdin, stdout = cast("AsyncFile[str]", lines), cast("AsyncFile[str]", answers)  # no other methods are called
        try:
            async with stdio_server(stdin=stdin, stdout=stdout) as (reading, writing):
                await server.run(reading, writing, server.create_initialization_options())
        except BaseExceptionGroup as group:  # the library may still pass on a line when Ctrl-C ends the session
            _, faults = group.split((BrokenResourceError, ClosedResourceError))
            if faults is not None:
                raise faults from None
    if answers.error is not None:
        raise answers.error


def _moved_stdout() -> int:
    """Return a descriptor of stdout, whose own one becomes that of stderr."""
    moved = os.dup(1)
    with suppress(OSError):  # stderr is closed
        os.dup2(2, 1)
    return moved


class _Answers:
    """The answers on stdout. Unlike with the library, a failed write ends the session, and a hanging one does not
    prevent that.
    """

    def __init__(self, stdout: int, end: Callable[[], None]) -> None:
        self._stdout, self._end = stdout, end
        self.error: OSError | None = None

    async def write(self, text: str) -> None:
        try:
            await in_daemon(partial(self._written, text.encode()))
        except OSError as exc:
            self.error = exc
            self._end()

    async def flush(self) -> None:
        """Do nothing: no buffer is left that would fail again at the interpreter's exit."""

    def _written(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._stdout, data) :]


class _Lines:
    """The lines of stdin that the library answers; the others are refused.

    Unlike those of anyio, a read can be abandoned, so that Ctrl-C ends the server at once.
    """

    def __init__(
        self,
        stdin: BinaryIO,
        calls: set[asyncio.Task[Any]],
        refuse: Callable[[JSONRPCError], Awaitable[None]],
    ) -> None:
        self._stdin, self._calls, self._refuse = stdin, calls, refuse

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        is_long = False
        while line := await in_daemon(partial(self._stdin.readline, LINE_BYTES)):
            is_rest, is_long = is_long, len(line) == LINE_BYTES and not line.endswith(b"\n")
            if is_rest:
                continue
            text = line.decode("utf-8", "replace")
            errors = (TOO_LONG,) if is_long else refusals(text)
            if errors is None:
                return text
            for error in errors:
                await self._refuse(error)
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
