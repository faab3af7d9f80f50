"""Messages of three APIs become the same steps: OpenAI chat, Responses items, Anthropic messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.exceptions import RecordError
from reasonblocks.render import FRAME
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import Record, RecordedRun, read_runs
from reasonblocks_workbench.traces._anthropic import AnthropicMessages
from reasonblocks_workbench.traces._openai_chat import OpenAIChat
from reasonblocks_workbench.traces._openai_responses import OpenAIResponses
from reasonblocks_workbench.traces._run import Reader
from tests.workbench.traces.conftest import Write, fault, only

DIALECTS: dict[str, Reader] = {one.name: one for one in (OpenAIChat(), OpenAIResponses(), AnthropicMessages())}


def steps(write: Write, *messages: object) -> tuple[Step, ...]:
    return only(write("a.json", list(messages))).steps


def user(text: object = "fix it") -> dict[str, Any]:
    return {"role": "user", "content": text}


# ------------------------------------------------------------ who claims what

CLAIMS: list[tuple[JSON, str | None]] = [
    ([user(), {"role": "assistant", "content": "hello"}], "openai-chat"),
    ({"messages": [user()], "tools": []}, "openai-chat"),
    ([{"role": "system", "content": "be good"}, user(), {"role": "tool", "tool_call_id": "1"}], "openai-chat"),
    ([user([{"type": "image_url", "image_url": {}}])], "openai-chat"),
    ([user([{"type": "input_text", "text": "hi"}])], "openai-responses"),
    ({"model": "m", "input": [user(), {"type": "function_call", "name": "a"}]}, "openai-responses"),
    ([user(), {"type": "web_search_call", "id": "1"}], "openai-responses"),
    ([user(), {"type": "function_call_output", "call_id": "1", "output": "x"}], "openai-responses"),
    ([{"type": "message", "role": "user", "content": "hi"}], "openai-responses"),
    ([user(), {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "a"}]}], "anthropic"),
    ([user([{"type": "text", "text": "hi"}]), {"role": "assistant", "content": [], "stop_reason": None}], "anthropic"),
    ({"role": "assistant", "content": None, "tool_calls": []}, "openai-chat"),
    ({"choices": [], "model": "m"}, "openai-chat"),
    ({"object": "response", "output": []}, "openai-responses"),
    (user(), None),
    ([], None),
    ([{"type": "human", "data": {"content": "hi"}}], None),
    ({"steps": [], "messages": [user()]}, None),
    ({"event": "step", "run_id": "r", "output": []}, None),
]


@pytest.mark.parametrize(("value", "name"), CLAIMS)
def test_the_first_message_that_only_one_format_has_decides(value: JSON, name: str | None) -> None:
    assert [reader.name for reader in DIALECTS.values() if reader.sniff(value)] == ([name] if name else [])


def test_messages_without_a_format_of_their_own_wait_for_one_that_has(write: Write) -> None:
    use = {"type": "tool_use", "id": "1", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "a.py"}
    run = only(write("a.jsonl", user(), {"role": "assistant", "content": [use]}, user([result])))
    assert (run.task, [step.observation for step in run.steps]) == ("fix it", ["a.py"])


@pytest.mark.parametrize(
    ("lines", "lack"),
    [
        ([user(), {"role": "assistant", "content": "hello"}], "openai-chat: single messages without a tool's call"),
        ([{"type": "assistant", "message": {}, "session_id": "s"}], "claude-code: no 'sessionId'"),
    ],
)
def test_a_file_that_comes_close_is_told_what_it_lacks(write: Write, lines: list[JSON], lack: str) -> None:
    assert lack in fault(write("a.jsonl", *lines)).reason


# ------------------------------------------------------------ in every dialect


def chat_call(key: str, name: str = "ls", arguments: object = "{}") -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(dialect: str, *keys: str, text: str = "hm") -> list[dict[str, Any]]:
    """An answer that calls the tool `ls`, once for each id."""
    if dialect == "openai-chat":
        return [{"role": "assistant", "content": text, "tool_calls": [chat_call(key) for key in keys]}]
    if dialect == "openai-responses":
        calls = [{"type": "function_call", "call_id": key, "name": "ls", "arguments": "{}"} for key in keys]
        return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}, *calls]
    uses = [{"type": "tool_use", "id": key, "name": "ls", "input": {}} for key in keys]
    return [{"role": "assistant", "content": [{"type": "text", "text": text}, *uses]}]


def result(dialect: str, key: str, output: str) -> dict[str, Any]:
    if dialect == "openai-chat":
        return {"role": "tool", "tool_call_id": key, "content": output}
    if dialect == "openai-responses":
        return {"type": "function_call_output", "call_id": key, "output": output}
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": key, "content": output}]}


every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
def test_parallel_calls_are_one_step(write: Write, dialect: str) -> None:
    found = steps(write, *asks(dialect, "1", "2"), result(dialect, "2", "two"), result(dialect, "1", "one"))
    assert [(one.name, one.output) for step in found for one in step.tool_results] == [("ls", "two"), ("ls", "one")]


@every_dialect
def test_ids_that_repeat_belong_to_the_newest_step(write: Write, dialect: str) -> None:
    twice = [part for output in ("one", "two") for part in (*asks(dialect, "1"), result(dialect, "1", output))]
    assert [step.observation for step in steps(write, *twice)] == ["one", "two"]


@every_dialect
def test_a_result_that_nobody_asked_for_goes_to_the_last_step(write: Write, dialect: str) -> None:
    assert steps(write, *asks(dialect), result(dialect, "9", "from nowhere"))[0].observation == "from nowhere"


@every_dialect
def test_a_result_without_an_id_goes_to_the_last_step(write: Write, dialect: str) -> None:
    found = steps(write, *asks(dialect, ""), user(), *asks(dialect, "1"), result(dialect, "", "for the second"))
    assert [[(one.name, one.output) for one in step.tool_results] for step in found] == [[], [("ls", "for the second")]]


@every_dialect
def test_a_result_before_any_step_is_left_out(write: Write, dialect: str) -> None:
    assert steps(write, result(dialect, "9", "from nowhere"), *asks(dialect)) == (Step(thought="hm"),)


@every_dialect
def test_what_is_known_of_a_run_stands_beside_its_messages(write: Write, dialect: str) -> None:
    known = {"run_id": "r", "outcome": "success", "task": "other words", "model": "m", "parent_run_id": "p"}
    run = only(write("a.json", {**known, "messages": [user(), *asks(dialect, "1")]}))
    assert (run.run_id, run.outcome, run.task, run.model, run.parent_run_id) == (
        "r",
        "success",
        "other words",
        "m",
        "p",
    )


@every_dialect
def test_a_file_may_have_one_run_a_line(write: Write, dialect: str) -> None:
    lines = [{"messages": [user(task), *asks(dialect, "1")]} for task in ("one", "two")]
    assert [item.task for item in read_runs(write("a.jsonl", *lines)) if isinstance(item, RecordedRun)] == [
        "one",
        "two",
    ]


@every_dialect
def test_single_messages_between_lists_are_runs_of_their_own(write: Write, dialect: str) -> None:
    alone = asks(dialect, "1")
    found = list(read_runs(write("a.jsonl", *alone, [user("two"), *alone], *alone)))
    assert [(item.line, len(item.steps)) for item in found if isinstance(item, RecordedRun)] == [
        (1, 1), (len(alone) + 1, 1), (len(alone) + 2, 1),
    ]  # fmt: skip


@every_dialect
def test_a_message_that_is_no_object_is_reported_with_its_place(write: Write, dialect: str) -> None:
    error = fault(write("a.jsonl", [*asks(dialect, "1"), "text"]))
    assert (error.line, "dictionary" in error.reason) == (1, True)


@every_dialect
def test_a_malformed_line_does_not_hide_the_runs_around_it(write: Write, dialect: str) -> None:
    run = {"messages": asks(dialect, "1")}
    found = list(read_runs(write("a.jsonl", run, "{torn", {"messages": 5}, run)))
    assert [item.line for item in found] == [1, 2, 3, 4]
    assert [isinstance(item, RecordedRun) for item in found] == [True, False, False, True]


# ------------------------------------------------------------ OpenAI chat


def test_the_older_call_of_a_function_is_read(write: Write) -> None:
    asked = {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": '{"at": 1}'}}
    (step,) = steps(write, asked, {"role": "function", "name": "ls", "content": "a.py"})
    assert step.tool_calls == (ToolCall(id="", name="ls", arguments={"at": 1}),)
    assert step.tool_results == (ToolResult(call_id="", name="ls", output="a.py"),)


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("[" * 99_999, {"input": "[" * 99_999}),
        ("{broken", {"input": "{broken"}),
        ("[1]", {"input": "[1]"}),
        ("", {}),
        ({"at": 1}, {"at": 1}),
        (None, {}),
    ],
)
def test_arguments_that_are_no_object_go_under_one_key(write: Write, given: object, arguments: object) -> None:
    (step,) = steps(write, {"role": "assistant", "tool_calls": [chat_call("1", arguments=given)]})
    assert step.tool_calls[0].arguments == arguments


def test_half_an_emoji_in_arguments_becomes_the_replacement_character(write: Write) -> None:
    (step,) = steps(write, {"role": "assistant", "tool_calls": [chat_call("1", arguments=r'{"a": "cut \ud83d"}')]})
    assert step.tool_calls[0].arguments == {"a": "cut \ufffd"}


def test_free_text_for_a_custom_tool_is_its_input(write: Write) -> None:
    call = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    (step,) = steps(write, {"role": "assistant", "tool_calls": [call]})
    assert step.tool_calls == (ToolCall(id="1", name="sql", arguments={"input": "select 1"}),)


def test_parts_refusals_and_reasoning_of_a_chat_are_told_apart(write: Write) -> None:
    parts = [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {}},
        {"type": "refusal", "refusal": "no"},
    ]
    answer = {"role": "assistant", "content": parts, "refusal": "never", "reasoning_content": "inner"}
    assert steps(write, answer) == (Step(thought="one\n[image]\nno\nnever", reasoning="inner"),)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_stands_beside_the_content_of_a_chat(write: Write, field: str) -> None:
    assert steps(write, {"role": "assistant", "content": "t", field: "inner"}) == (
        Step(thought="t", reasoning="inner"),
    )


def test_other_messages_make_no_step(write: Write) -> None:
    prompts = [{"role": role, "content": "be good"} for role in ("system", "developer")]
    run = only(write("a.json", [*prompts, user([{"type": "text", "text": "hi"}, {"type": "input_audio"}])]))
    assert (run.steps, run.task) == ((), "hi")


def test_a_request_and_its_answer_may_be_one_object(write: Write) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "Done."}}], "usage": {"completion_tokens": 7}}
    run = only(write("a.jsonl", {"messages": [user()], **answer}))
    assert (run.task, run.steps, run.usages) == ("fix it", (Step(thought="Done."),), (Usage(output=7),))


# ------------------------------------------------------------ Responses


def test_items_between_two_inputs_are_one_step(write: Write) -> None:
    thinks = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "inner"}], "encrypted_content": "x"}
    found = steps(write, user(), thinks, *asks("openai-responses", "1"), result("openai-responses", "1", "one"), thinks)
    assert [(step.reasoning, step.thought, step.observation) for step in found] == [
        ("inner", "hm", "one"),
        ("inner", "", ""),
    ]


def test_a_tool_of_the_provider_is_a_call_with_its_result(write: Write) -> None:
    code = {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]}
    (step,) = steps(write, user(), code)
    assert (step.action, step.tool_calls[0].arguments) == ("code_interpreter", {"code": "1+1"})
    assert "2" in step.observation


def test_the_task_is_the_first_item_of_the_user(write: Write) -> None:
    prompts = [{"role": role, "content": "be good"} for role in ("system", "developer")]
    assert only(write("a.json", [*prompts, user(), *asks("openai-responses", "1")])).task == "fix it"


def test_a_failed_call_is_an_error(write: Write) -> None:
    failed = {**result("openai-responses", "1", "no"), "status": "failed"}
    assert steps(write, *asks("openai-responses", "1"), failed)[0].is_error is True


# ------------------------------------------------------------ Anthropic


def test_consecutive_answers_are_steps_of_their_own(write: Write) -> None:
    found = steps(write, *asks("anthropic", "1", text="one"), *asks("anthropic", text="two"))
    assert [step.thought for step in found] == ["one", "two"]


def test_a_failed_result_of_anthropic_is_an_error(write: Write) -> None:
    failed = result("anthropic", "1", "no")
    failed["content"][0]["is_error"] = True
    assert steps(write, *asks("anthropic", "1"), failed)[0].is_error is True


def test_the_task_is_the_first_text_of_the_user(write: Write) -> None:
    said = [{"type": "image", "source": {}}, {"type": "text", "text": "hi"}]
    assert only(write("a.json", [user(said), *asks("anthropic", "1")])).task == "[image]\nhi"


def test_a_note_beside_a_result_is_no_task(write: Write) -> None:
    noted = result("anthropic", "1", "ok")
    noted["content"].append({"type": "text", "text": "a note"})
    assert only(write("a.json", [*asks("anthropic", "1"), noted])).task == ""


# ------------------------------------------------------------ what the user says during a run


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_user_says_between_two_answers_belongs_to_the_second(write: Write, dialect: str) -> None:
    turn = [*asks(dialect, "1"), result(dialect, "1", "ok")]
    run = only(write("a.json", [user(), user("at once"), *turn, user("wait"), user("go on"), *turn, *turn]))
    assert run.task == "fix it"
    assert [step.user_text for step in run.steps] == ["", "wait\n\ngo on", ""]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_guidance_that_a_recorded_request_had_is_not_the_users(write: Write, dialect: str) -> None:
    turn = [*asks(dialect, "1"), result(dialect, "1", "ok")]
    guided = [user(), *turn, user(f"go on\n\n{FRAME}\nRead it."), *turn, user(f"{FRAME}\nRead it."), *turn]
    assert [step.user_text for step in steps(write, *guided)] == ["", "go on", ""]


def test_of_texts_beside_a_result_reminders_are_not_the_users(write: Write) -> None:
    noted = result("anthropic", "1", "ok")
    reminder = {"type": "text", "text": "<system-reminder>It is late.</system-reminder>"}
    noted["content"] += [reminder, {"type": "text", "text": "only the parser"}]
    said = steps(write, user(), *asks("anthropic", "1"), noted, *asks("anthropic", "2"))
    assert [step.user_text for step in said] == ["", "only the parser"]


# ------------------------------------------------------------ any JSON

NAMES = (
    "role type content tool_calls function_call function choices message output usage id call_id tool_call_id "
    "arguments input text summary messages name model error".split()
)
WORDS = (
    "assistant user tool function message function_call function_call_output reasoning text tool_use tool_result "
    "thinking shell_call shell_call_output response 1 {}".split()
)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=24,
)


@every_dialect
@given(values=st.lists(anything, max_size=4))
def test_no_json_is_an_exception(dialect: str, values: list[JSON]) -> None:
    records = [Record(line=line, value=value) for line, value in enumerate(values, 1)]
    for item in DIALECTS[dialect].read("a.jsonl", records):
        assert isinstance(item, RecordError) or len(item.steps) == len(item.usages)
        assert item.line in range(1, len(values) + 1)


@given(value=anything)
def test_at_most_one_reader_of_messages_claims_a_value(value: JSON) -> None:
    assert sum(reader.sniff(value) for reader in DIALECTS.values()) <= 1


def test_a_value_too_deep_for_the_stack_is_a_malformed_record() -> None:
    deep: Any = {}
    for _ in range(99_999):
        deep = {"a": deep}
    failed = result("anthropic", "1", "")
    failed["content"][0]["content"] = deep
    (item,) = AnthropicMessages().read("a.json", [Record(line=3, value=[*asks("anthropic", "1"), failed])])
    assert isinstance(item, RecordError)
    assert (item.line, item.reason) == (3, "is nested too deeply")


@every_dialect
def test_a_text_too_deep_to_be_read_does_not_hide_the_runs_after_it(write: Write, dialect: str) -> None:
    asked = json.dumps(asks(dialect, "1"))
    deep = asked.replace('"hm"', '{"a":' * 900 + "1" + "}" * 900)
    assert isinstance(list(read_runs(write("a.jsonl", deep, asked)))[-1], RecordedRun)


RESULTS: dict[str, tuple[object, str, bool | None]] = {
    "a part": ({"type": "text", "text": "a", "annotations": None, "meta": None}, "a", None),
    "parts": ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", None),
    "a result": ({"content": [{"type": "text", "text": "no"}], "isError": True}, "no", True),
    "another value": ({"files": ["a"]}, '{"files": ["a"]}', None),
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_json_of_an_mcp_servers_content_is_read_as_the_content(write: Write, name: str) -> None:
    value, output, is_error = RESULTS[name]
    call = {"id": "1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps(value)},
    ]
    (run,) = read_runs(write("a.json", messages))
    assert isinstance(run, RecordedRun)
    (result,) = run.steps[0].tool_results
    assert (result.output, result.is_error) == (output, is_error)
