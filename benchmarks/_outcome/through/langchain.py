"""Plays a task with an agent of LangChain's `create_agent`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware.types import AgentMiddleware, AgentState, hook_config
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from reasonblocks import ReasonBlocks
from reasonblocks_langchain import middleware

from ..environment import Tool
from .task import Endpoint, Task

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.runtime import Runtime


def play(task: Task, endpoint: Endpoint, rb: ReasonBlocks | None) -> None:
    """Play the task to its end on the endpoint. Raises `ImportError` if langchain-openai is missing."""
    play_with(task, chat_model(endpoint), rb)


def chat_model(endpoint: Endpoint) -> BaseChatModel:
    """Return LangChain's client of the endpoint."""
    return init_chat_model(
        endpoint.model,
        model_provider="openai",
        base_url=endpoint.base_url,
        api_key=endpoint.sent_key,
        temperature=endpoint.temperature,
        max_retries=endpoint.retries,
        timeout=endpoint.timeout,
        use_responses_api=False,
    )


def play_with(task: Task, model: BaseChatModel, rb: ReasonBlocks | None) -> None:
    """Play the task to its end with any chat model."""
    mw = None if rb is None else middleware(rb, run_id=task.run_id, agent_name=task.family)
    agent = create_agent(
        model,
        tools=[_declared(tool) for tool in task.environment.tools],
        system_prompt=task.environment.system or None,
        middleware=[InEnvironment(task), *([mw] if mw else [])],
    )
    try:
        with mw or nullcontext():
            agent.invoke({"messages": [HumanMessage(task.message)]}, config={"max_concurrency": 1})
    finally:
        for run in mw.runs.values() if mw else ():
            task.steered(run)


class InEnvironment(AgentMiddleware[AgentState[Any], Any, Any]):
    """Makes the agent's calls in the environment, and ends the run with the task.

    It is the first middleware, so that steering decides nothing once the task is over.
    """

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.tools = []
        self._task = task

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return {"jump_to": "end"} if self._task.over else None

    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        answer = state["messages"][-1]
        assert isinstance(answer, AIMessage)
        usage: Any = answer.usage_metadata or {}
        self._task.answered(
            answer.text,
            calls=bool(answer.tool_calls),
            prompt=usage.get("input_tokens", 0),
            completion=usage.get("output_tokens", 0),
            cached=usage.get("input_token_details", {}).get("cache_read"),
        )

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> ToolMessage:
        call = request.tool_call
        result = self._task.make(call["name"], call["args"])
        status = "error" if result.is_error else "success"
        return ToolMessage(result.text, tool_call_id=call["id"], name=call["name"], status=status)


def _declared(tool: Tool) -> BaseTool:
    """Return the tool as LangChain declares it to the model. Its calls never reach it."""
    function = tool["function"]
    return StructuredTool(
        name=function["name"],
        description=function["description"],
        args_schema=function["parameters"],
        func=_not_called,
    )


def _not_called(**arguments: Any) -> str:
    raise AssertionError("the environment makes the calls")
