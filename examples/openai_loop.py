"""A steered agent loop, written by hand on the OpenAI client (Responses API): sync, async and streamed.

`python examples/openai_loop.py` runs the first of the three against a scripted provider, offline. It needs
`pip install openai` beside `reasonblocks-core` and `reasonblocks-testing`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from loop_agent import (
    DESCRIPTIONS,
    PARAMETERS,
    SCRIPT,
    SYSTEM_PROMPT,
    TASK,
    arguments_of,
    run_tools,
    story,
)
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import FunctionToolParam, Response, ResponseStreamEvent
from openai.types.responses.response_input_param import FunctionCallOutput

from reasonblocks import ReasonBlocks, SteeringSession, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from reasonblocks.adapters import failure_of, ms_since
from reasonblocks.render import steered_request
from reasonblocks.types import StepDecision
from reasonblocks_testing.server import ScriptedServer

MODEL = "gpt-6.2-sol"
TOOLS = [
    FunctionToolParam(type="function", name=name, description=text, parameters=dict(PARAMETERS[name]), strict=False)
    for name, text in DESCRIPTIONS.items()
]


def run(client: OpenAI, session: SteeringSession, task: str) -> str:
    """Run the agent and return its answer. An error of the client is recorded and raised; the run is finished.

    With `ReasonBlocks(stop_when=...)` the session may end the run: then `begin_step` raises `RunStopped`. With
    `second_look="unchecked"` an answer that the run contradicts, or has not checked, gets one more call.
    """
    history: list[Any] = [{"role": "user", "content": task}]  # the client's own items, answers included
    with session:
        decision = session.begin_step(StepInput(default_model=MODEL))
        while True:
            instructions, asked = request(decision, history)
            started = time.perf_counter()
            try:
                response = client.responses.create(model=MODEL, instructions=instructions, input=asked, tools=TOOLS)
            except BaseException as exc:
                session.end_step(decision, failure_of(exc, model=MODEL, latency_ms=ms_since(started)))
                raise
            outcome = outcome_of(response, ms_since(started))
            session.end_step(decision, outcome)
            history += response.output
            if outcome.tool_calls:
                results = run_tools(outcome.tool_calls)
                history += map(output_item, results)
                completed = Step(tool_results=results)  # the thought and the calls are known from `end_step`
                decision = session.begin_step(StepInput(completed=completed, default_model=MODEL))
            elif (second_look := session.second_look()) is not None:  # only with ReasonBlocks(second_look=...)
                decision = second_look
            else:
                return outcome.text


async def run_async(client: AsyncOpenAI, session: SteeringSession, task: str) -> str:
    """Like `run`, on an event loop."""
    history: list[Any] = [{"role": "user", "content": task}]
    async with session:
        decision = await session.abegin_step(StepInput(default_model=MODEL))
        while True:
            instructions, asked = request(decision, history)
            started = time.perf_counter()
            try:
                response = await client.responses.create(
                    model=MODEL, instructions=instructions, input=asked, tools=TOOLS
                )
            except BaseException as exc:  # including cancellation
                session.end_step(decision, failure_of(exc, model=MODEL, latency_ms=ms_since(started)))
                raise
            outcome = outcome_of(response, ms_since(started))
            session.end_step(decision, outcome)
            history += response.output
            if outcome.tool_calls:
                results = run_tools(outcome.tool_calls)
                history += map(output_item, results)
                completed = Step(tool_results=results)
                decision = await session.abegin_step(StepInput(completed=completed, default_model=MODEL))
            elif (second_look := await session.asecond_look()) is not None:
                decision = second_look
            else:
                return outcome.text


def run_streamed(client: OpenAI, session: SteeringSession, task: str, say: Callable[[str], object]) -> str:
    """Like `run`, and pass the model's text to `say` as it arrives. A stream that breaks off is an error."""
    history: list[Any] = [{"role": "user", "content": task}]
    with session:
        decision = session.begin_step(StepInput(default_model=MODEL))
        while True:
            instructions, asked = request(decision, history)
            started = time.perf_counter()
            try:
                with client.responses.create(
                    model=MODEL, instructions=instructions, input=asked, tools=TOOLS, stream=True
                ) as stream:
                    response = listened(iter(stream), say)
            except BaseException as exc:
                session.end_step(decision, failure_of(exc, model=MODEL, latency_ms=ms_since(started)))
                raise
            outcome = outcome_of(response, ms_since(started))
            session.end_step(decision, outcome)
            history += response.output
            if outcome.tool_calls:
                results = run_tools(outcome.tool_calls)
                history += map(output_item, results)
                completed = Step(tool_results=results)
                decision = session.begin_step(StepInput(completed=completed, default_model=MODEL))
            elif (second_look := session.second_look()) is not None:
                decision = second_look
            else:
                return outcome.text


# --- conversion between the client's types and ours


def request(decision: StepDecision, history: list[Any]) -> tuple[Any, list[Any]]:
    """Return the system prompt and the input of this one request. (Any, because other clients take blocks.)"""
    return steered_request(decision, SYSTEM_PROMPT, history)


def outcome_of(response: Response, latency_ms: float) -> StepOutcome:
    """Return the outcome of the call."""
    calls = [item for item in response.output if item.type == "function_call"]
    thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    return StepOutcome(
        model=response.model,
        usage=usage_of(response),
        latency_ms=latency_ms,
        text=response.output_text,
        reasoning="\n".join(thoughts),
        tool_calls=tuple(
            ToolCall(id=call.call_id, name=call.name, arguments=arguments_of(call.arguments)) for call in calls
        ),
        stop_reason=response.status,
    )


def usage_of(response: Response) -> Usage:
    if response.usage is None:
        return Usage()
    read, written = response.usage.input_tokens_details, response.usage.output_tokens_details
    return Usage(
        input=response.usage.input_tokens,
        output=response.usage.output_tokens,
        cache_read=read.cached_tokens,
        cache_write=read.cache_write_tokens,
        reasoning=written.reasoning_tokens,
    )


def output_item(result: ToolResult) -> FunctionCallOutput:
    return FunctionCallOutput(type="function_call_output", call_id=result.call_id, output=result.output)


def listened(events: Iterator[ResponseStreamEvent], say: Callable[[str], object]) -> Response:
    """Read a stream to its end and return the whole response."""
    for event in events:
        if event.type == "response.output_text.delta":
            say(event.delta)
        elif event.type in ("response.completed", "response.incomplete"):
            return event.response
    raise RuntimeError("the stream ended without a response")


def main() -> None:
    with ScriptedServer(SCRIPT) as server, OpenAI(base_url=server.openai_url, api_key="not needed") as client:
        session = ReasonBlocks().session(task=TASK)
        answer = run(client, session, TASK)
        print("\n".join(story(session, server.requests)), answer, sep="\n\n")


if __name__ == "__main__":
    main()
