"""The text that stands for the content of messages and results, in every format and in every reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.messages import anthropic, claude_code, langchain, openai, openai_chat
from reasonblocks.messages.content import json_of, output_of, text_of
from reasonblocks.types import ToolResult
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.pictures import CONTENTS, OTHER, PNG, RESULTS, forms, name, url

Results = Callable[[Any], ToolResult]
READERS: Mapping[str, Results] = {
    "anthropic": lambda content: anthropic.result_of({"tool_use_id": "c", "content": content}),
    "claude code": lambda content: claude_code.result_of({"tool_use_id": "c", "content": content}),
    "langchain": lambda content: langchain.result_of({"tool_call_id": "c", "content": content}, {}),
    "openai": lambda content: openai.result_of({"call_id": "c", "output": content}),
    "openai chat": lambda content: openai_chat.result_of({"tool_call_id": "c", "content": content}, {}),
}


@pytest.mark.parametrize(("output", "text"), RESULTS.values(), ids=RESULTS)
def test_a_result_is_read_as_its_texts_pictures_and_values(output: Any, text: str) -> None:
    assert output_of(output) == text


@pytest.mark.parametrize(("output", "text"), RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_result_has_the_same_text_in_every_format(read: Results, output: Any, text: str) -> None:
    assert read(output).output == text


@pytest.mark.parametrize(("content", "text"), CONTENTS.values(), ids=CONTENTS)
def test_a_message_is_read_as_its_texts_and_pictures(content: Any, text: str) -> None:
    assert text_of(content) == text


def test_a_message_says_nothing_by_its_calls_and_its_reasoning() -> None:
    parts = ({"type": "tool_use", "id": "c", "name": "look", "input": {}}, {"type": "thinking", "thinking": "Hm."})
    assert text_of([*parts, {"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Done."}]) == "Done."


@given(st.binary(min_size=1), st.binary(min_size=1))
def test_a_picture_has_one_name_in_all_forms_and_another_picture_another(picture: bytes, other: bytes) -> None:
    names = {output_of([form]) for form in forms(picture).values()}
    assert names == {name(picture)}
    assert (names == {output_of([form]) for form in forms(other).values()}) == (picture == other)


@given(st.text())
def test_malformed_contents_still_tell_pictures_apart(text: str) -> None:
    assert output_of({"type": "image", "data": f"…{text}"}) != output_of({"type": "image", "data": f"…{text}x"})


def test_a_data_url_may_be_plain_text() -> None:
    drawn = output_of({"type": "image_url", "image_url": "data:image/svg+xml;charset=utf-8,%3Csvg%2F%3E"})
    assert drawn == name(b"<svg/>")


def test_a_long_address_is_cut_and_still_names_its_picture() -> None:
    one, other = (output_of({"type": "image", "url": f"https://a.b/{'c' * 1_000}{at}"}) for at in range(2))
    assert (one == other, len(one) < 250) == (False, True)


def test_the_json_of_a_value_holds_no_contents_of_pictures() -> None:
    value = {"pages": [{"shot": forms(PNG)["anthropic"]}, {"raw": PNG}], "thumb": url(OTHER)}
    shown = {"pages": [{"shot": name(PNG)}, {"raw": name(PNG, "file")}], "thumb": name(OTHER)}
    assert json_of(value) == json.dumps(shown)


# --- recorded runs


CALL = {"id": "c", "name": "look", "arguments": {}}
OTEL_CALL = {"role": "assistant", "parts": [{"type": "tool_call", **CALL}]}


def spans(result: Mapping[str, Any]) -> list[Any]:
    """A call that asked for a tool, and the one after it, which was given `result` as its message."""
    given = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Look."}]}, OTEL_CALL, result])
    first = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([OTEL_CALL])}
    return [otlp(span("1", 1, **first), span("2", 2, **{**first, "gen_ai.input.messages": given}))]


def span(id: str, at: int, **named: str) -> dict[str, Any]:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in named.items()]
    return {"traceId": "t", "spanId": id, "name": id, "startTimeUnixNano": str(at), "attributes": attributes}


def otlp(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def tool_span(result: str) -> list[Any]:
    asked = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([OTEL_CALL])}
    ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c", "gen_ai.tool.call.result": result}
    return [otlp(span("1", 1, **asked), span("2", 2, **ran))]


def nodes(content: Any) -> list[Any]:
    call = {"name": "look", "args": {}, "id": "c"}
    said = {"type": "ai", "content": "", "tool_calls": [call]}
    result = {"type": "tool", "content": content, "tool_call_id": "c"}
    of = {"trace_id": "t", "parent_run_id": "r", "inputs": {}}
    return [
        {**of, "id": "r", "run_type": "chain", "name": "agent", "dotted_order": "1", "parent_run_id": None},
        {**of, "id": "m", "run_type": "llm", "dotted_order": "2",
         "outputs": {"generations": [[{"message": {"kwargs": said}}]]}},
        {**of, "id": "t", "run_type": "tool", "name": "look", "dotted_order": "3",
         "outputs": {"output": {"kwargs": result}}},
    ]  # fmt: skip


FILES: Mapping[str, Callable[[Any], list[Any]]] = {
    "anthropic": lambda content: [[
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": content}]},
    ]],
    "atif": lambda content: [{
        "schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a"},
        "steps": [{"source": "agent", "tool_calls": [{"tool_call_id": "c", "function_name": "look"}],
                   "observation": {"results": [{"source_call_id": "c", "content": content}]}}],
    }],
    "claude code": lambda content: [
        {"type": "assistant", "sessionId": "s", "uuid": "1", "parentUuid": None,
         "message": {"id": "m", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]}},
        {"type": "user", "sessionId": "s", "uuid": "2", "parentUuid": "1",
         "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": content}]}},
    ],
    "langchain": lambda content: [[
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c", "name": "look", "args": {}}]}},
        {"type": "tool", "data": {"content": content, "tool_call_id": "c"}},
    ]],
    "langsmith": nodes,
    "openai chat": lambda content: [[
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": content},
    ]],
    "openai responses": lambda content: [[
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": content},
    ]],
    "opentelemetry, a part": lambda content: spans(
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": content}]}
    ),
    "opentelemetry, a part in json": lambda content: spans(
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": json.dumps(content)}]}
    ),
    "opentelemetry, a message": lambda content: spans({"role": "tool", "tool_call_id": "c", "content": content}),
    "opentelemetry, a span": lambda content: tool_span(json.dumps(content)),
    "ours": lambda content: [{
        "steps": [{"tool_calls": [CALL], "tool_results": [{"call_id": "c", "output": content}]}],
    }],
    "ours, flat": lambda content: [{"steps": [{"action": "look", "observation": content}]}],
}  # fmt: skip
IN_JSON = {shape: result for shape, result in CONTENTS.items() if "bedrock" not in shape}
"""The contents that a file can hold: Bedrock's are bytes."""


@pytest.mark.parametrize(("content", "text"), IN_JSON.values(), ids=IN_JSON)
@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_recorded_result_has_the_same_text_in_every_format(
    file: Callable[[Any], list[Any]], content: Any, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{json.dumps(value)}\n" for value in file(content)), encoding="utf-8")
    run = next(iter(read_runs(str(path))))
    assert isinstance(run, RecordedRun), run
    assert run.steps[0].tool_results[0].output == text
