"""What the CLI's messages and hooks say is said in our words, and a decision in theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

from reasonblocks.messages.anthropic import tool_name
from reasonblocks.messages.claude_code import SYNTHETIC, result_of, task_done
from reasonblocks.types import FSMState, Step, StepDecision, ToolCall, ToolResult
from reasonblocks_claude_agent.convert import (
    answer_of,
    batch_step,
    context,
    ending_of,
    outcome_of,
    result_told,
    step_as_json,
    step_kept,
    usage_of,
)


def said(*content: Any, **more: Any) -> AssistantMessage:
    return AssistantMessage(content=list(content), **{"model": "m", "message_id": "msg", **more})


def result(**more: Any) -> ResultMessage:
    given: dict[str, Any] = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False}
    return ResultMessage(**{**given, "num_turns": 1, "session_id": "s", **more})


LOOK = ToolUseBlock(id="c1", name="mcp__t__look", input={"at": {"deep": [1]}})


def test_an_answer_in_several_messages_is_one_step() -> None:
    step = answer_of([said(ThinkingBlock(thinking="Hm.", signature="s")), said(TextBlock(text="I look.")), said(LOOK)])
    call = ToolCall(id="c1", name="look", arguments={"at": {"deep": [1]}})
    assert step == Step(thought="I look.", reasoning="Hm.", tool_calls=(call,))


def test_a_step_holds_nothing_of_the_sdk() -> None:
    arguments: dict[str, Any] = {"at": {"deep": [1]}}
    step = answer_of([said(ToolUseBlock(id="c1", name="look", input=arguments))])
    arguments["at"]["deep"].append(2)
    assert step.tool_calls[0].arguments == {"at": {"deep": [1]}}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("mcp__t__look", "look"),
        ("mcp__t__a__b", "a__b"),
        ("Bash", "Bash"),
        ("mcp__t__", "mcp__t__"),
        ("mcp__t", "mcp__t"),
    ],
)
def test_a_tool_has_the_name_that_its_server_gives_it(name: str, ours: str) -> None:
    assert tool_name(name) == ours


@pytest.mark.parametrize(("flag", "ours"), [(True, True), (False, None), (None, None)])
def test_a_result_that_is_no_error_says_nothing_of_errors(flag: bool | None, ours: bool | None) -> None:
    assert result_of(ToolResultBlock(tool_use_id="c1", content="x", is_error=flag)).is_error is ours


def test_input_tokens_count_what_was_cached() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 20, "output_tokens": 1}
    read = usage_of([said(TextBlock(text="a"), usage=usage)], output=None)
    assert (read.input, read.cache_read, read.cache_write, read.output) == (35, 10, 20, None)


def test_the_start_value_of_output_tokens_is_not_believed() -> None:
    assert usage_of([said(usage={"input_tokens": 5, "output_tokens": 1})], output=77).output == 77


def test_without_usage_nothing_is_known() -> None:
    assert usage_of([said()], output=3).total is None


def outcome(*messages: AssistantMessage) -> Any:
    return outcome_of(answer_of(messages), messages, model="asked", output=None, latency_ms=1.0)


def test_the_model_is_the_one_that_answered() -> None:
    assert outcome(said(TextBlock(text="a"), model="answered")).model == "answered"


def test_the_clis_own_message_is_an_error_of_the_model_that_was_asked() -> None:
    failed = outcome(said(TextBlock(text="API Error: 529"), model=SYNTHETIC, error="overloaded"))
    assert (failed.model, failed.error, failed.text) == ("asked", "overloaded: API Error: 529", "")


@pytest.mark.parametrize(
    ("message", "error", "outcome"),
    [
        (result(), None, "success"),
        (result(subtype="error_max_turns", is_error=True), None, "failure: error_max_turns"),
        (result(is_error=True), "overloaded", "failure: overloaded"),
    ],
)
def test_a_run_ends_as_its_result_says(message: ResultMessage, error: str | None, outcome: str) -> None:
    assert ending_of(message, error) == outcome


CALLS = [{"tool_name": "mcp__t__look", "tool_input": {"at": 1}, "tool_use_id": "c1", "tool_response": "1 is empty"}]


def test_a_batch_is_a_step_where_nobody_reads_the_stream() -> None:
    step = batch_step(CALLS, None, {})
    assert step.tool_calls == (ToolCall(id="c1", name="look", arguments={"at": 1}),)
    assert step.tool_results == (ToolResult(call_id="c1", name="look", output="1 is empty"),)


def test_what_the_stream_says_of_a_result_goes_before_the_batch() -> None:
    known = ToolResult(call_id="c1", name="mcp__t__look", output="as read", is_error=True, duration_ms=4.0)
    assert batch_step(CALLS, None, {"c1": known}).tool_results == (
        ToolResult(call_id="c1", name="look", output="as read", is_error=True, duration_ms=4.0),
    )


def test_a_call_without_a_result_has_none() -> None:
    answer = Step(tool_calls=(ToolCall(id="denied", name="look", arguments={}),))
    assert batch_step(CALLS, answer, {}).tool_results == ()


def test_a_hook_of_one_tool_tells_its_time_and_its_error() -> None:
    given = {"tool_use_id": "c1", "tool_name": "look", "error": "boom", "duration_ms": 7}
    assert result_told(given) == ToolResult(call_id="c1", name="look", output="boom", is_error=True, duration_ms=7.0)


@pytest.mark.parametrize(
    ("prompt", "task"),
    [
        ("<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>", "a1"),
        ("Look at <task-notification><task-id>a1</task-id>", None),
        ("<task-notification>", None),
        ("", None),
    ],
)
def test_a_tasks_end_is_told_by_a_prompt_of_the_clis(prompt: str, task: str | None) -> None:
    assert task_done(prompt) == task


def decision(guidance: str | None) -> StepDecision:
    return StepDecision(step=0, fsm_state=FSMState.INIT, placement="context", guidance=guidance or "")


def test_guidance_is_the_hooks_context() -> None:
    assert context("PostToolBatch", decision("[REASONBLOCKS]\nLook.")) == {
        "hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "[REASONBLOCKS]\nLook."}
    }


@pytest.mark.parametrize("given", [None, decision(None)])
def test_without_guidance_a_hook_says_nothing(given: StepDecision | None) -> None:
    assert context("PostToolBatch", given) == {}


@pytest.mark.parametrize("words", ["(mcp__t__look completed with no output)", "Command failed with no output"])
def test_the_clis_words_for_nothing_are_nothing(words: str) -> None:
    assert result_of(ToolResultBlock(tool_use_id="t", content=words, is_error=True)).output == ""


@pytest.mark.parametrize("said", ["Command failed with no output", "(look completed with no output)"])
def test_a_failed_tool_that_said_nothing_has_no_words_of_the_clis(said: str) -> None:
    assert result_told({"tool_use_id": "c1", "error": said}).output == ""


def test_a_step_comes_through_json_as_it_was() -> None:
    call = ToolCall(id="c1", name="look", arguments={"at": {"deep": [1, None, "ü"]}})
    came = ToolResult(call_id="c1", name="look", output="nothing", is_error=True, duration_ms=3.0)
    step = Step(thought="I look.", reasoning="Hm.", tool_calls=(call,), tool_results=(came,), user_text="Go on.")
    assert step_kept(json.loads(json.dumps(step_as_json(step)))) == step
