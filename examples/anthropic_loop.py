"""A steered agent loop, written by hand on the Anthropic client (Messages API): sync, async and streamed.

`python examples/anthropic_loop.py` runs the first of the three against a scripted provider, offline. It needs
`pip install anthropic` beside `reasonblocks-core` and `reasonblocks-testing`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import Message, ToolParam, ToolResultBlockParam, ToolUseBlock
from loop_agent import DESCRIPTIONS, PARAMETERS, SCRIPT, SYSTEM_PROMPT, TASK, run_tools, story

from reasonblocks import ReasonBlocks, SteeringSession, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from reasonblocks.adapters import failure_of, ms_since
from reasonblocks.render import steered_request
from reasonblocks.types import StepDecision
from reasonblocks_testing.server import ScriptedServer

MODEL = "claude-sonnet-5-5"
MAX_TOKENS = 4_096
TOOLS = [
    ToolParam(name=name, description=text, input_schema=dict(PARAMETERS[name])) for name, text in DESCRIPTIONS.items()
]


def run(client: Anthropic, session: SteeringSession, task: str) -> str:
    """Run the agent and return its answer. An error of the client is recorded and raised; the run is finished."""
    history: list[Any] = [{"role": "user", "content": task}]  # the client's own messages, answers included
    completed: Step | None = None
    with session:
        while True:
            decision = session.begin_step(StepInput(completed=completed, default_model=MODEL))
            system, asked = request(decision, history)
            started = time.perf_counter()
            try:
                message = client.messages.create(
                    model=MODEL, max_tokens=MAX_TOKENS, system=system, messages=asked, tools=TOOLS
                )
            except BaseException as exc:
                session.end_step(decision, failure_of(exc, model=MODEL, latency_ms=ms_since(started)))
                raise
            outcome = outcome_of(message, ms_since(started))
            session.end_step(decision, outcome)
            history.append({"role": "assistant", "content": message.content})
            if not outcome.tool_calls:
                return outcome.text
            results = run_tools(outcome.tool_calls)
            history.append({"role": "user", "content": [result_block(result) for result in results]})
            completed = Step(tool_results=results)  # `end_step` has reported the thought and the calls


async def run_async(client: AsyncAnthropic, session: SteeringSession, task: str) -> str:
    """Like `run`, on an event loop."""
    history: list[Any] = [{"role": "user", "content": task}]
    completed: Step | None = None
    async with session:
        while True:
            decision = await session.abegin_step(StepInput(completed=completed, default_model=MODEL))
            system, asked = request(decision, history)
            started = time.perf_counter()
            try:
                message = await client.messages.create(
                    model=MODEL, max_tokens=MAX_TOKENS, system=system, messages=asked, tools=TOOLS
                )
            except BaseException as exc:  # including cancellation
                session.end_step(decision, failure_of(exc, model=MODEL, latency_ms=ms_since(started)))
                raise
            outcome = outcome_of(message, ms_since(started))
            session.end_step(decision, outcome)
            history.append({"role": "assistant", "content": message.content})
            if not outcome.tool_calls:
                return outcome.text
            results = run_tools(outcome.tool_calls)
            history.append({"role": "user", "content": [result_block(result) for result in results]})
            completed = Step(tool_results=results)


def run_streamed(client: Anthropic, session: SteeringSession, task: str, say: Callable[[str], object]) -> str:
    """Like `run`, and pass the model's text to `say` as it arrives. A stream that breaks off is an error."""
    history: list[Any] = [{"role": "user", "content": task}]
    completed: Step | None = None
    with session:
        while True:
            decision = session.begin_step(StepInput(completed=completed, default_model=MODEL))
            system, asked = request(decision, history)
            started = time.perf_counter()
            try:
                with client.messages.stream(
                    model=MODEL, max_tokens=MAX_TOKENS, system=system, messages=asked, tools=TOOLS
                ) as stream:
                    for text in stream.text_stream:
                        say(text)
                    message = stream.get_final_message()
            except BaseException as exc:
                session.end_step(decision, failure_of(exc, model=MODEL, latency_ms=ms_since(started)))
                raise
            outcome = outcome_of(message, ms_since(started))
            session.end_step(decision, outcome)
            history.append({"role": "assistant", "content": message.content})
            if not outcome.tool_calls:
                return outcome.text
            results = run_tools(outcome.tool_calls)
            history.append({"role": "user", "content": [result_block(result) for result in results]})
            completed = Step(tool_results=results)


# --- conversion between the client's types and ours


def request(decision: StepDecision, history: list[Any]) -> tuple[Any, list[Any]]:
    """Return the system prompt of this one request, as a cached block, and its messages.

    The types are Any because other clients take text. Anthropic accepts four cache marks in a request: none is added if
    prompt, messages and tools already have four.
    """
    return steered_request(decision, SYSTEM_PROMPT, history, cache_control=True, tools=TOOLS)


def outcome_of(message: Message, latency_ms: float) -> StepOutcome:
    """Return the outcome of the call."""
    return StepOutcome(
        model=message.model,
        usage=usage_of(message),
        latency_ms=latency_ms,
        text="\n".join(block.text for block in message.content if block.type == "text"),
        reasoning="\n".join(block.thinking for block in message.content if block.type == "thinking"),
        tool_calls=tuple(call_of(block) for block in message.content if block.type == "tool_use"),
        stop_reason=message.stop_reason,
    )


def call_of(block: ToolUseBlock) -> ToolCall:
    arguments: Any = block.input  # JSON, although the client types it as object
    return ToolCall(id=block.id, name=block.name, arguments=arguments)


def usage_of(message: Message) -> Usage:
    """Return the token counts. This API counts cached input separately; `Usage.input` includes it."""
    read, written = message.usage.cache_read_input_tokens or 0, message.usage.cache_creation_input_tokens or 0
    return Usage(
        input=message.usage.input_tokens + read + written,
        output=message.usage.output_tokens,
        cache_read=read,
        cache_write=written,
    )


def result_block(result: ToolResult) -> ToolResultBlockParam:
    return ToolResultBlockParam(
        type="tool_result", tool_use_id=result.call_id, content=result.output, is_error=bool(result.is_error)
    )


def main() -> None:
    with ScriptedServer(SCRIPT) as server, Anthropic(base_url=server.anthropic_url, api_key="not needed") as client:
        session = ReasonBlocks().session(task=TASK)
        answer = run(client, session, TASK)
        print("\n".join(story(session, server.requests)), answer, sep="\n\n")


if __name__ == "__main__":
    main()
