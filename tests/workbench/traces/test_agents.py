"""Sessions of coding agents and messages of other libraries, made by `tools/agent_fixtures.py` or by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import FIXTURES, Write, only
from tests.workbench.traces.test_recordings import RUN, in_common

SHELL = {"codex.jsonl": ("exec_command", "cmd"), "pi.jsonl": ("bash", "command"),
         "mini_swe_agent.json": ("bash", "command")}  # fmt: skip
COMMANDS = {"c1": "echo a.py is empty", "c2": "cat b.py", "c3": "echo c.py is empty"}
each = pytest.mark.parametrize("name", ["ai_sdk.json", "bedrock.json", *SHELL])


def expected(name: str) -> list[Step]:
    """The steps of the same run, with the commands of a shell in the place of the tool."""
    if name not in SHELL:
        return [*RUN]
    tool, field = SHELL[name]
    steps = [
        replace(
            step,
            tool_calls=tuple(
                ToolCall(id=call.id, name=tool, arguments={field: COMMANDS[call.id]}) for call in step.tool_calls
            ),
            tool_results=tuple(replace(result, name=tool) for result in step.tool_results),
        )
        for step in RUN
    ]
    if name != "mini_swe_agent.json":
        return steps
    submit = {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo done"}
    return [*steps[:2], replace(steps[2], tool_calls=(ToolCall(id="c4", name="bash", arguments=submit),))]


def seen(step: Step) -> Step:
    """A step with the last line of each output."""
    results = [replace(result, output=result.output.strip().splitlines()[-1]) for result in step.tool_results]
    return in_common(replace(step, tool_results=tuple(results)))


@each
def test_the_steps_of_the_run_are_read(name: str) -> None:
    run = only(FIXTURES / name)
    assert [seen(step) for step in run.steps] == expected(name)
    assert (run.task.removeprefix("Please solve this issue: "), run.outcome) == ("Fix the failing tests.", None)


@each
def test_the_failed_tool_failed(name: str) -> None:
    first, *_ = only(FIXTURES / name).steps
    assert [(result.call_id, result.is_error) for result in first.tool_results] == [("c1", None), ("c2", True)]


@pytest.mark.parametrize("name", ["bedrock.json", *SHELL])
def test_reasoning_and_tokens_are_read(name: str) -> None:
    run = only(FIXTURES / name)
    assert run.steps[0].reasoning == "Both files may matter."
    assert [(one.input, one.output) for one in run.usages[:3]] == [(100, 10), (200, 20), (300, 30)]


def test_the_same_command_has_the_same_result_in_codex() -> None:
    first, *_ = only(FIXTURES / "codex.jsonl").steps
    assert first.tool_results[0].output.startswith("Process exited with code 0\n")


def test_older_rollouts_have_their_tokens_in_events_and_the_exit_code_in_json(write: Write) -> None:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "t", "type": kind, "payload": payload}

    def item(kind: str, **fields: Any) -> dict[str, Any]:
        return line("response_item", type=kind, **fields)

    def said(role: str, text: str) -> dict[str, Any]:
        return item("message", role=role, content=[{"type": "input_text", "text": text}])

    output = json.dumps({"output": "no such file", "metadata": {"exit_code": 2, "duration_seconds": 0.1}})
    counts = {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 3, "reasoning_output_tokens": 1}
    run = only(write(
        "a.jsonl", line("session_meta", id="s", cwd="/repo"), said("user", "<environment_context>x"),
        said("user", "Fix it."), item("function_call", call_id="1", name="shell", arguments='{"command": ["ls"]}'),
        line("event_msg", type="token_count", info={"last_token_usage": counts}),
        item("function_call_output", call_id="1", output=output), said("assistant", "Done."),
    ))  # fmt: skip
    assert (run.run_id, run.task) == ("s", "Fix it.")
    assert run.usages == (Usage(input=9, output=3, cache_read=4, reasoning=1), Usage())
    assert run.steps[0].tool_results == (ToolResult(call_id="1", name="shell", output=output, is_error=True),)


@pytest.mark.parametrize(("code", "is_error"), [("0", None), ("1", True), ("-1", True), ("9" * 5_000, None)])
def test_an_exit_code_of_any_length_is_read_or_left(write: Write, code: str, is_error: bool | None) -> None:
    def item(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": {"type": kind, "call_id": "1", **fields}}

    run = only(write(
        "a.jsonl", item("function_call", name="sh", arguments="{}"),
        item("function_call_output", output=f"Process exited with code {code}\nx"),
    ))  # fmt: skip
    assert [result.is_error for result in run.steps[0].tool_results] == [is_error]


@pytest.mark.parametrize("record", [
    {"id": "2", "parentId": "1", "message": {"text": "A comment in a thread."}},
    {"question": "Which?", "choices": ["this", "that"], "answer": 1},
    [{"role": "admin", "name": "Ann"}, {"role": "user", "name": "Bob"}],
])  # fmt: skip
def test_records_that_only_resemble_messages_are_no_run(write: Write, record: object) -> None:
    (error,) = read_runs(write("a.json", record))
    assert isinstance(error, RecordError)
    assert error.reason.startswith("contains no recorded run")


def test_a_message_without_a_role_is_no_answer(write: Write) -> None:
    called = {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "ls", "input": {}}]}
    assert len(only(write("a.json", [called, {"content": "A note."}])).steps) == 1


def test_a_branch_of_pi_that_was_left_is_not_read(write: Write) -> None:
    def line(id: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"type": "message", "id": id, "parentId": parent, "message": message}

    run = only(write(
        "a.jsonl", {"type": "session", "version": 3, "id": "s", "cwd": "/repo"}, line("1", None, "user", "Fix it."),
        line("2", "1", "assistant", "No."), line("3", "1", "assistant", "Yes."),
        {"type": "custom", "id": "4", "parentId": "3"},
    ))  # fmt: skip
    assert (run.run_id, [step.thought for step in run.steps]) == ("s", ["Yes."])


def test_a_trajectory_without_tools_has_its_commands_in_its_texts(write: Write) -> None:
    run = only(write("a.json", {
        "trajectory_format": "mini-swe-agent-1", "info": {"exit_status": "LimitsExceeded"}, "messages": [
            {"role": "user", "content": "Fix it."},
            {"role": "assistant", "content": "I look.", "extra": {"actions": [{"command": "ls"}]}},
            {"role": "user", "content": "<returncode>2</returncode>", "extra": {"raw_output": "no", "returncode": 2}},
        ],
    }))  # fmt: skip
    assert run.outcome == "failure: LimitsExceeded"
    assert run.steps == (
        Step(
            thought="I look.",
            tool_calls=(ToolCall(id="", name="bash", arguments={"command": "ls"}),),
            tool_results=(ToolResult(call_id="", name="bash", output="no", is_error=True),),
        ),
    )


def test_results_of_version_4_of_the_ai_sdk_are_read(write: Write) -> None:
    call = {"type": "tool-call", "toolCallId": "1", "toolName": "ls", "args": {"path": "."}}
    result = {"type": "tool-result", "toolCallId": "1", "toolName": "ls", "result": "no", "isError": True}
    run = only(write("a.json", [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": [{"type": "reasoning", "text": "Hm."}, call]},
        {"role": "tool", "content": [result]},
    ]))  # fmt: skip
    assert run.steps == (
        Step(
            reasoning="Hm.",
            tool_calls=(ToolCall(id="1", name="ls", arguments={"path": "."}),),
            tool_results=(ToolResult(call_id="1", name="ls", output="no", is_error=True),),
        ),
    )


def test_blocks_that_no_reader_knows_are_counted_and_named(write: Write) -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
        {"role": "assistant", "content": [{"type": "toolInvocation", "name": "ls"}, {"type": "text", "text": "Hm."}]},
        {"role": "assistant", "content": [{"executable": {}}, {"type": "toolInvocation"}]},
    ]
    run, error = read_runs(write("a.json", messages))
    assert isinstance(run, RecordedRun)
    assert isinstance(error, RecordError)
    assert "3 of 5 blocks were not understood (such as 'toolInvocation', 'executable')" in error.reason
    assert "openai-chat is only the nearest format" in error.reason
