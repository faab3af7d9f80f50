"""Makes LangChain tools from the tools of codebase memory."""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, Any

from langchain_core.tools import BaseTool, ToolException
from pydantic import SkipValidation

from reasonblocks.memory import MemoryTool, ToolAnswer


class CodebaseTool(BaseTool):
    """A tool of codebase memory. The arguments are validated by the tool itself; an error is an error message."""

    codebase_tool: Annotated[MemoryTool, SkipValidation()]
    handle_tool_error: Any = True

    def _run(self, /, **arguments: Any) -> str:
        return _text(self.codebase_tool.call(arguments))

    async def _arun(self, /, **arguments: Any) -> str:
        return _text(await self.codebase_tool.acall(arguments))


def langchain_tool(tool: MemoryTool) -> BaseTool:
    return CodebaseTool(
        name=tool.name, description=tool.description, args_schema=deepcopy(dict(tool.parameters)), codebase_tool=tool
    )


def _text(answer: ToolAnswer) -> str:
    if answer.is_error:
        raise ToolException(answer.text)
    return answer.text
