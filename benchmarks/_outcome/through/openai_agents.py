"""Plays a task with an agent of the OpenAI Agents SDK.

A refused call returns its error's text, as tools made by hand do in this SDK.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    FunctionToolResult,
    ItemHelpers,
    MaxTurnsExceeded,
    Model,
    ModelResponse,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    ToolsToFinalOutputResult,
)
from agents.run_config import ToolErrorFormatterArgs
from agents.tool_context import ToolContext
from openai import AsyncOpenAI
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from reasonblocks import ReasonBlocks
from reasonblocks_openai_agents import openai_run, steering_of

from ..environment import Tool
from .task import Endpoint, Task, parsed


def play(task: Task, endpoint: Endpoint, rb: ReasonBlocks | None) -> None:
    """Play the task to its end on the endpoint."""
    asyncio.run(_play(task, endpoint, rb))


async def _play(task: Task, endpoint: Endpoint, rb: ReasonBlocks | None) -> None:
    async with AsyncOpenAI(
        base_url=endpoint.base_url, api_key=endpoint.sent_key, max_retries=endpoint.retries, timeout=endpoint.timeout
    ) as client:
        model = OpenAIChatCompletionsModel(model=endpoint.model, openai_client=client)
        await play_with(task, model, rb, temperature=endpoint.temperature)


async def play_with(task: Task, model: Model, rb: ReasonBlocks | None, *, temperature: float | None = None) -> None:
    """Play the task to its end with any model."""
    agent = Agent(
        name=task.family,
        instructions=task.environment.system or None,
        model=model,
        model_settings=ModelSettings(temperature=temperature),
        tools=[_in_environment(task, tool) for tool in task.environment.tools],
        tool_use_behavior=partial(_after_calls, task),
    )
    with suppress(MaxTurnsExceeded):
        await (_unsteered(task, agent) if rb is None else _steered(task, agent, rb))


async def _unsteered(task: Task, agent: Agent[Any]) -> None:
    await Runner.run(
        agent, task.message, max_turns=task.environment.max_steps, hooks=Answers(task), run_config=_config(task)
    )


async def _steered(task: Task, agent: Agent[Any], rb: ReasonBlocks) -> None:
    try:
        result = await openai_run(
            rb,
            agent,
            task.message,
            run_id=task.run_id,
            max_turns=task.environment.max_steps,
            hooks=Answers(task),
            run_config=_config(task),
        )
    except Exception as exc:
        with suppress(LookupError):  # raised before there was a run
            task.steered(steering_of(exc).view)
        raise
    task.steered(steering_of(result).view)


def _config(task: Task) -> RunConfig:
    """Return the run's settings: nothing is traced, and the model reads of a tool that does not exist."""
    return RunConfig(
        tracing_disabled=True,
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=partial(_formatted, task),
    )


def _formatted(task: Task, error: ToolErrorFormatterArgs[Any]) -> str | None:
    """Return the environment's text for a tool that does not exist; other errors are the SDK's."""
    return task.make(error.tool_name, {}).text if error.kind == "tool_not_found" else None


def _after_calls(
    task: Task, context: RunContextWrapper[Any], results: list[FunctionToolResult]
) -> ToolsToFinalOutputResult:
    """End the run with the task, as soon as a turn's calls are made."""
    return ToolsToFinalOutputResult(is_final_output=task.over, final_output="" if task.over else None)


class Answers(RunHooks[Any]):
    """Notes the model's answers in the task."""

    def __init__(self, task: Task) -> None:
        self._task = task

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Note the answer. The SDK has 0 for cached tokens of which the endpoint did not say anything."""
        spoken = [item for item in response.output if isinstance(item, ResponseOutputMessage)]
        self._task.answered(
            "\n".join(filter(None, map(ItemHelpers.extract_text, spoken))),
            calls=any(isinstance(item, ResponseFunctionToolCall) for item in response.output),
            prompt=response.usage.input_tokens,
            completion=response.usage.output_tokens,
            cached=response.usage.input_tokens_details.cached_tokens or None,
        )


def _in_environment(task: Task, tool: Tool) -> FunctionTool:
    function = tool["function"]
    name: str = function["name"]

    async def call(context: ToolContext[Any], arguments: str) -> str:
        return task.make(name, parsed(arguments)).text

    return FunctionTool(
        name=name,
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=call,
        strict_json_schema=False,
    )
