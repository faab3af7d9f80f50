"""What an answer's items say, whichever form the SDK gives them in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Usage as SDKUsage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import (
    ResponseCodeInterpreterToolCall,
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_code_interpreter_tool_call import OutputLogs
from openai.types.responses.response_function_web_search import ActionSearch
from openai.types.responses.response_output_item import McpCall
from openai.types.responses.response_reasoning_item import Summary
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage
from pydantic import BaseModel

from reasonblocks.messages.content import text_of
from reasonblocks.messages.openai import answer_of, local_call_ids, usage_of
from reasonblocks.types import JSON, Step, ToolCall, ToolResult, Usage
from tests.pictures import PNG, data, name, url

MESSAGE = ResponseOutputMessage(
    id="m",
    role="assistant",
    status="completed",
    type="message",
    content=[
        ResponseOutputText(text="I look.", type="output_text", annotations=[]),
        ResponseOutputRefusal(refusal="Not there.", type="refusal"),
    ],
)
THINKING = ResponseReasoningItem(
    id="r",
    type="reasoning",
    summary=[Summary(text="Which file?", type="summary_text"), Summary(text="That one.", type="summary_text")],
)
LOOK = ResponseFunctionToolCall(call_id="c0", name="look", arguments='{"path": "a"}', type="function_call", id="f")
READ = ResponseFunctionToolCall(call_id="c1", name="read", arguments="{}", type="function_call", id="g")
ANSWER: list[BaseModel] = [THINKING, MESSAGE, LOOK, READ]


def as_dicts(items: list[BaseModel]) -> list[Any]:
    return [item.model_dump(exclude_unset=True) for item in items]


@pytest.mark.parametrize("items", [ANSWER, as_dicts(ANSWER)], ids=["models", "dicts"])
def test_an_answer_is_what_was_thought_and_called(items: list[Any]) -> None:
    assert answer_of(items) == Step(
        thought="I look.\nNot there.",
        reasoning="Which file?\nThat one.",
        tool_calls=(
            ToolCall(id="c0", name="look", arguments={"path": "a"}),
            ToolCall(id="c1", name="read", arguments={}),
        ),
    )


def test_reasoning_without_a_summary_is_its_own_text() -> None:
    items = [{"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}]
    assert answer_of(items).reasoning == "Hm."


def test_encrypted_reasoning_says_nothing() -> None:
    assert answer_of([{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "xyz"}]) == Step()


def test_texts_of_several_messages_stand_one_below_the_other() -> None:
    said = [{"role": "assistant", "content": "One."}, {"type": "message", "role": "assistant", "content": "Two."}]
    assert answer_of(said).thought == "One.\nTwo."


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ('{"path": "a", "lines": [1, 2]}', {"path": "a", "lines": [1, 2]}),
        ("", {}),
        ("{}", {}),
        ('{"path": ', {"input": '{"path": '}),
        ("[1, 2]", {"input": "[1, 2]"}),
        ("null", {"input": "null"}),
    ],
)
def test_arguments_are_the_object_that_they_say_else_the_text(arguments: str, meant: JSON) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments}
    assert answer_of([item]).tool_calls[0].arguments == meant


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.dictionaries(st.text(), st.recursive(LEAVES, st.lists, max_leaves=8), max_size=4))
def test_any_object_is_read_as_it_was_written(arguments: dict[str, Any]) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": json.dumps(arguments)}
    assert answer_of([item]).tool_calls[0].arguments == arguments


@given(st.text())
def test_no_arguments_are_too_odd_to_be_read(arguments: str) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments}
    (call,) = answer_of([item]).tool_calls
    assert isinstance(call.arguments, dict)


SEARCH = ResponseFunctionWebSearch(
    id="ws", status="completed", type="web_search_call", action=ActionSearch(type="search", query="pytest")
)
MCP = McpCall(id="mcp", type="mcp_call", name="read", server_label="files", arguments="{}", output="empty")
CODE = ResponseCodeInterpreterToolCall(
    id="ci",
    type="code_interpreter_call",
    code="1 + 1",
    container_id="x",
    status="completed",
    outputs=[OutputLogs(type="logs", logs="2")],
)


@pytest.mark.parametrize("form", [lambda item: [item], lambda item: as_dicts([item])], ids=["model", "dict"])
@pytest.mark.parametrize(
    ("item", "call", "results"),
    [
        (SEARCH, ToolCall(id="ws", name="web_search", arguments={"action": {"type": "search", "query": "pytest"}}), ()),
        (
            MCP,
            ToolCall(id="mcp", name="read", arguments={}),
            (ToolResult(call_id="mcp", name="read", output="empty", is_error=None),),
        ),
        (
            CODE,
            ToolCall(id="ci", name="code_interpreter", arguments={"code": "1 + 1"}),
            (ToolResult(call_id="ci", name="code_interpreter", output='[{"type": "logs", "logs": "2"}]'),),
        ),
    ],
    ids=["web search", "mcp", "code"],
)
def test_a_tool_of_the_provider_brings_its_result_with_it(
    form: Callable[[BaseModel], list[Any]], item: BaseModel, call: ToolCall, results: tuple[ToolResult, ...]
) -> None:
    said = answer_of(form(item))
    assert said.tool_calls == (call,)
    assert [(result.call_id, result.name, result.is_error) for result in said.tool_results] == [
        (result.call_id, result.name, result.is_error) for result in results
    ]
    assert [sorted(result.output) for result in said.tool_results] == [sorted(result.output) for result in results]


@pytest.mark.parametrize("error", ["no such file", {"type": "http_error", "code": 404, "message": "no such file"}])
def test_a_failed_call_of_an_mcp_server_is_an_error(error: object) -> None:
    item = {"type": "mcp_call", "id": "mcp", "name": "read", "arguments": "{}", "output": None, "error": error}
    (result,) = answer_of([item]).tool_results
    assert (result.is_error, "no such file" in result.output) == (True, True)


SHELL: list[Any] = [
    {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "a", "stderr": ""}]},
]


def test_a_shell_of_the_provider_brings_its_result_in_an_item_of_its_own() -> None:
    assert answer_of(SHELL) == Step(
        tool_calls=(ToolCall(id="s", name="shell", arguments={"action": {"commands": ["ls"]}}),),
        tool_results=(ToolResult(call_id="s", name="shell", output="a"),),
    )


def test_the_arguments_of_a_custom_tool_are_its_text() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}
    assert answer_of([item]).tool_calls == (ToolCall(id="c", name="patch", arguments={"input": "*** Begin"}),)


def test_the_arguments_of_a_tool_search_are_an_object_already() -> None:
    item = {"type": "tool_search_call", "call_id": "c", "arguments": {"query": "files"}, "execution": "client"}
    assert answer_of([item]).tool_calls == (ToolCall(id="c", name="tool_search", arguments={"query": "files"}),)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("computer_call", {"action": {"type": "click", "x": 1}}),
        ("local_shell_call", {"action": {"type": "exec", "command": ["ls"]}}),
        ("apply_patch_call", {"operation": {"type": "delete_file", "path": "a"}}),
        ("file_search_call", {"queries": ["a", "b"]}),
    ],
)
def test_other_tools_say_what_they_do_in_a_field_of_their_own(kind: str, what: dict[str, Any]) -> None:
    (call,) = answer_of([{"type": kind, "id": "x", **what}]).tool_calls
    assert (call.name, call.arguments) == (kind.removesuffix("_call"), what)


def test_a_picture_that_the_provider_draws_is_a_result() -> None:
    drawn = {"type": "image_generation_call", "id": "i", "status": "completed", "result": data(PNG)}
    assert answer_of([drawn]).tool_results == (ToolResult(call_id="i", name="image_generation", output=name(PNG)),)
    assert answer_of([{**drawn, "result": None}]).tool_results == ()


def test_the_sdk_waits_for_calls_that_have_an_id_for_what_comes_back() -> None:
    assert local_call_ids([THINKING, MESSAGE, LOOK, SEARCH, MCP, CODE, READ]) == ("c0", "c1")


def test_the_sdk_waits_for_nothing_that_came_with_the_answer() -> None:
    assert local_call_ids([*SHELL, LOOK]) == ("c0",)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is", "as it is"),
        (
            [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": url(PNG)}, {"text": "b"}],
            f"a\n{name(PNG)}\nb",
        ),
        (ResponseOutputText(text="a", type="output_text", annotations=[]), "a"),
        ([], ""),
        ({}, ""),
    ],
)
def test_the_text_of_content_is_that_of_its_parts(content: object, text: str) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize("zero", [None, SDKUsage(), SDKUsage(requests=1), {"input_tokens": 0, "output_tokens": 0}])
def test_nobody_counted_where_there_are_no_tokens(zero: object) -> None:
    assert usage_of(zero) == Usage()


def test_tokens_are_as_the_provider_counts_them() -> None:
    counted = ResponseUsage(
        input_tokens=100,
        output_tokens=20,
        total_tokens=120,
        input_tokens_details=InputTokensDetails.model_construct(cached_tokens=60, cache_write_tokens=10),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=5),
    )
    assert usage_of(counted) == Usage(input=100, output=20, cache_read=60, cache_write=10, reasoning=5)


def test_details_that_are_not_told_are_not_known() -> None:
    assert usage_of({"input_tokens": 7, "output_tokens": 0}) == Usage(input=7, output=0)
