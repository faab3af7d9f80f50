"""The message stream tells what hooks do not: thoughts, tokens, and what the model read of a tool."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    StreamEvent,
    SystemMessage,
    TaskStartedMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from reasonblocks.types import ToolResult
from reasonblocks_claude_agent._stream import MAIN, MAX_RESULTS, Stream


def said(text: str, call: str | None = None, message_id: str | None = "m1", owner: str | None = None) -> Any:
    used = [ToolUseBlock(id=call, name="look", input={})] if call else []
    content: list[Any] = [TextBlock(text=text), *used]
    return AssistantMessage(content=content, model="m", message_id=message_id, parent_tool_use_id=owner)


def gave(call_id: str, text: str, is_error: bool | None = None) -> UserMessage:
    return UserMessage(content=[ToolResultBlock(tool_use_id=call_id, content=text, is_error=is_error)])


def written(tokens: int, owner: str | None = None) -> StreamEvent:
    event = {"type": "message_delta", "usage": {"output_tokens": tokens}}
    return StreamEvent(uuid="u", session_id="s", event=event, parent_tool_use_id=owner)


def told(*messages: object) -> Stream:
    stream = Stream()
    for message in messages:
        stream.saw(message)
    return stream


def thought(stream: Stream, owner: str | None = MAIN) -> str | None:
    answer = stream.newest(owner)
    return None if answer is None else answer.step.thought


def test_messages_of_one_id_are_one_answer() -> None:
    assert thought(told(said("I look."), said("And again."))) == "I look.\nAnd again."


def test_another_id_begins_another_answer() -> None:
    assert thought(told(said("I look."), said("It is done.", message_id="m2"))) == "It is done."


def test_messages_without_an_id_are_an_answer_each() -> None:
    assert thought(told(said("I look.", message_id=None), said("It is done.", message_id=None))) == "It is done."


def test_a_subagents_answers_are_its_own() -> None:
    stream = told(said("I look."), said("Inside.", message_id="m2", owner="t1"))
    assert (thought(stream), thought(stream, "t1")) == ("I look.", "Inside.")


def test_partial_messages_tell_how_much_was_written() -> None:
    answer = told(said("I look."), written(40)).newest(MAIN)
    assert answer is not None
    assert answer.output_tokens == 40


def test_a_subagents_tokens_are_not_the_main_agents() -> None:
    answer = told(said("I look."), written(40, owner="t1")).newest(MAIN)
    assert answer is not None
    assert answer.output_tokens is None


def test_a_result_has_the_streams_text_and_the_hooks_time() -> None:
    stream = told(gave("c1", "1 is empty"))
    stream.tells(ToolResult(call_id="c1", name="look", output="", duration_ms=4.0))
    assert stream.results == {"c1": ToolResult(call_id="c1", name="look", output="1 is empty", duration_ms=4.0)}


def test_a_failed_tool_failed_whoever_says_so() -> None:
    stream = Stream()
    stream.tells(ToolResult(call_id="c1", name="look", output="boom", is_error=True))
    stream.saw(gave("c1", "Error: boom"))
    assert stream.results["c1"].is_error is True


def test_old_results_are_forgotten() -> None:
    assert len(told(*(gave(f"c{at}", "x") for at in range(MAX_RESULTS + 1))).results) == MAX_RESULTS


def test_a_task_names_the_call_that_started_it() -> None:
    started = TaskStartedMessage(
        subtype="task_started", data={}, task_id="a1", description="d", uuid="u", session_id="s", tool_use_id="t1"
    )
    assert told(started).caller_of("a1") == "t1"


def test_what_runs_in_the_background_is_what_was_said_last() -> None:
    def running(*ids: str) -> SystemMessage:
        tasks = [{"task_id": one} for one in ids]
        return SystemMessage(subtype="background_tasks_changed", data={"tasks": tasks})

    assert told(running("a1", "a2"), running("a2")).background == {"a2"}


def test_an_answer_that_is_there_is_not_waited_for() -> None:
    async def found() -> str | None:
        answer = await told(said("I look.", "c1")).wait_for({"c1"}, 0.0)
        return None if answer is None else answer.step.thought

    assert asyncio.run(found()) == "I look."


def test_an_answer_on_its_way_is_waited_for() -> None:
    async def found() -> str | None:
        stream = Stream()
        waiting = asyncio.ensure_future(stream.wait_for({"c1", "c2"}, 30.0))
        for message in (said("I look.", "c1"), said("", "c2")):
            await asyncio.sleep(0)
            stream.saw(message)
        answer = await waiting
        return None if answer is None else answer.step.thought

    assert asyncio.run(found()) == "I look."


def test_an_answer_that_does_not_come_is_not_waited_for_longer() -> None:
    assert asyncio.run(Stream().wait_for({"c1"}, 0.0)) is None


def test_two_who_wait_are_both_told() -> None:
    async def both() -> list[bool]:
        stream = Stream()
        waiting = asyncio.gather(stream.wait_for({"c1"}, 30.0), stream.wait_for({"d1"}, 30.0))
        await asyncio.sleep(0)
        stream.saw(said("I look.", "c1"))
        stream.saw(said("Inside.", "d1", "m2", "t1"))
        return [answer is not None for answer in await waiting]

    assert asyncio.run(both()) == [True, True]
