"""What `messages_to_dict` of LangChain writes, without LangChain."""

from __future__ import annotations

from typing import Any

import pytest

from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import Write, fault, only

Message = dict[str, Any]


def human(text: str) -> Message:
    return {"type": "human", "data": {"content": text}}


def ai(content: object = "", *calls: tuple[str, str], **data: object) -> Message:
    made = [{"id": key, "name": name, "args": {"of": name}, "type": "tool_call"} for key, name in calls]
    return {"type": "ai", "data": {"content": content, "tool_calls": made, **data}}


def tool(call_id: str, content: object, **data: object) -> Message:
    return {"type": "tool", "data": {"content": content, "tool_call_id": call_id, "status": "success", **data}}


def steps(write: Write, *messages: Message) -> tuple[Step, ...]:
    return only(write("a.json", list(messages))).steps


RUN = [human("fix it"), ai("I look.", ("1", "ls")), tool("1", "a.py", name="ls"), ai("Done.")]


def test_each_message_of_the_model_is_a_step_with_its_results(write: Write) -> None:
    assert steps(write, *RUN) == (
        Step(
            thought="I look.",
            tool_calls=(ToolCall(id="1", name="ls", arguments={"of": "ls"}),),
            tool_results=(ToolResult(call_id="1", name="ls", output="a.py"),),
        ),
        Step(thought="Done."),
    )


def test_a_file_may_have_one_list_a_line(write: Write) -> None:
    found = [item.run_id for item in read_runs(write("a.jsonl", RUN, RUN)) if isinstance(item, RecordedRun)]
    assert found == ["a.jsonl:1", "a.jsonl:2"]


def test_the_task_is_the_first_human_message(write: Write) -> None:
    assert only(write("a.json", [*RUN, human("and now this"), ai("Yes.")])).task == "fix it"


def test_several_human_turns_are_one_run(write: Write) -> None:
    found = steps(write, *RUN, human("and now this"), ai("Yes."))
    assert [step.user_text for step in found] == ["", "", "and now this"]


def test_a_summary_that_langchain_wrote_is_not_what_the_user_said(write: Write) -> None:
    summary = {"type": "human", "data": {"content": "So far: ...", "additional_kwargs": {"lc_source": "summarization"}}}
    assert steps(write, *RUN, summary, ai("Yes."))[-1].user_text == ""


def test_parallel_calls_are_one_step(write: Write) -> None:
    (step,) = steps(write, ai("", ("1", "a"), ("2", "b")), tool("2", "two"), tool("1", "one"))
    assert [(result.name, result.output) for result in step.tool_results] == [("b", "two"), ("a", "one")]


def test_a_late_result_goes_to_the_step_that_asked(write: Write) -> None:
    first, second = steps(write, ai("", ("1", "a")), ai("", ("2", "b")), tool("1", "one"), tool("2", "two"))
    assert (first.observation, second.observation) == ("one", "two")


def test_ids_that_repeat_belong_to_the_newest_step(write: Write) -> None:
    found = steps(write, ai("", ("1", "a")), tool("1", "one"), ai("", ("1", "b")), tool("1", "two"))
    assert [step.observation for step in found] == ["one", "two"]


def test_a_result_that_nobody_asked_for_goes_to_the_last_step(write: Write) -> None:
    assert steps(write, ai("hm"), tool("9", "from nowhere"))[0].observation == "from nowhere"


def test_a_result_before_any_step_is_left_out(write: Write) -> None:
    assert steps(write, tool("9", "from nowhere"), ai("hm")) == (Step(thought="hm"),)


@pytest.mark.parametrize(("status", "flag"), [("error", True), ("success", None), (None, None)])
def test_a_result_is_an_error_only_when_its_status_says_so(write: Write, status: str | None, flag: bool | None) -> None:
    assert steps(write, ai("", ("1", "a")), tool("1", "x", status=status))[0].is_error is flag


def test_blocks_are_told_apart(write: Write) -> None:
    content = [
        {"type": "thinking", "thinking": "inner", "signature": "s"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "openai"}]},
        {"type": "reasoning", "reasoning": "standard"},
        {"type": "reasoning_content", "reasoning_content": {"text": "bedrock"}},
        {"type": "text", "text": "one"},
        "two",
        {"type": "tool_use", "id": "1", "name": "a", "input": {}},
    ]
    (step,) = steps(write, ai(content, ("1", "a")))
    assert (step.thought, step.reasoning, step.action) == ("one\ntwo", "inner\nopenai\nstandard\nbedrock", "a")


@pytest.mark.parametrize("extra", [{"reasoning_content": "inner"}, {"reasoning": {"summary": [{"text": "inner"}]}}])
def test_reasoning_may_stand_beside_the_content(write: Write, extra: dict[str, object]) -> None:
    assert steps(write, ai("t", additional_kwargs=extra))[0].reasoning == "inner"


def test_a_refusal_is_visible_text(write: Write) -> None:
    assert steps(write, ai([{"type": "refusal", "refusal": "I will not."}]))[0].thought == "I will not."


def test_calls_whose_json_was_invalid_count(write: Write) -> None:
    bad = {"id": "1", "name": "a", "args": "{broken", "error": "no JSON", "type": "invalid_tool_call"}
    (step,) = steps(write, ai("", invalid_tool_calls=[bad]))
    assert step.tool_calls == (ToolCall(id="1", name="a", arguments={"input": "{broken"}),)


def test_usage_is_kept(write: Write) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_token_details": {"cache_read": 4, "cache_creation": 3},
        "output_token_details": {"reasoning": 2},
    }
    assert only(write("a.json", [ai("t", usage_metadata=usage), ai("u")])).usages == (
        Usage(input=10, output=5, cache_read=4, cache_write=3, reasoning=2),
        Usage(),
    )


def test_the_model_is_the_one_that_answered(write: Write) -> None:
    assert only(write("a.json", [ai("t", response_metadata={"model_name": "m-1"})])).model == "m-1"


def test_other_messages_make_no_step(write: Write) -> None:
    assert steps(write, {"type": "system", "data": {"content": "be good"}}, human("hi")) == ()


def test_a_malformed_message_says_where_and_what(write: Write) -> None:
    assert "messages.1.data.content" in fault(write("a.json", [human("hi"), ai(12)])).reason


def test_what_langchain_writes_today_is_read(write: Write) -> None:
    langchain = pytest.importorskip("langchain_core.messages")
    messages = [
        langchain.SystemMessage("be good"),
        langchain.HumanMessage("fix it"),
        langchain.AIMessage("I look.", tool_calls=[{"id": "1", "name": "ls", "args": {"of": "ls"}}]),
        langchain.ToolMessage("a.py", tool_call_id="1", name="ls"),
        langchain.AIMessage("Done."),
    ]
    assert steps(write, *langchain.messages_to_dict(messages)) == steps(write, *RUN)
