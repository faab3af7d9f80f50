"""No reader raises, whatever JSON it meets; every record is a run or an error of its line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import astuple
from types import FrameType, NoneType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.exceptions import RecordError
from reasonblocks_workbench.traces import READERS, Reader, RecordedRun, read_logs, read_runs
from tests.workbench.traces.conftest import FIXTURES, Write

ANY = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = [reader.name for reader in READERS]
RECORD_READERS = [reader.name for reader in READERS if isinstance(reader, Reader)]

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
KEYS = (
    "event", "run_id", "step_index", "timestamp", "thought", "action", "tool_calls", "tool_results", "metadata",
    "scores", "outcome", "doubts", "final", "skipped_reason",
    "schema_version", "session_id", "agent", "steps", "source", "message", "observation", "results", "source_call_id",
    "content", "metrics", "extra", "function_name", "tool_call_id", "arguments",
    "resourceSpans", "scopeSpans", "spans", "resource", "attributes", "key", "value", "stringValue", "intValue",
    "arrayValue", "kvlistValue", "values", "traceId", "spanId", "parentSpanId", "startTimeUnixNano", "events", "name",
    "status", "code",
    "id", "run_type", "trace_id", "dotted_order", "parent_run_id", "inputs", "outputs", "error", "child_runs",
    "generations", "choices", "kwargs", "type", "role", "parts", "messages", "input", "data", "usage", "llm_output",
    "payload", "parentId", "traceId", "trajectory_format", "toolUse", "toolResult", "observations",
)  # fmt: skip
WORDS = (
    "step", "run_start", "run_finish", "ATIF-v1.4", "agent", "user", "gen_ai.operation.name", "invoke_agent", "chat",
    "execute_tool", "gen_ai.output.messages", "gen_ai.input.messages", "llm.output_messages.0.message.content",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id", "gen_ai.completion.0.content", "gen_ai.tool.call.id",
    "gen_ai.choice", "[{}]", '[{"role": "assistant", "parts": [{"type": "tool_call"}]}]', "llm", "tool", "chain", "ai",
    r'{"a": "\ud83d"}',
    "assistant", "human", "tool_call", "tool_call_response", "a", "b", "1",
)  # fmt: skip
anything = st.recursive(
    leaves | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=20,
)


def values_of(name: str) -> list[Any]:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    return [json.loads(text)] if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]


RESULT = {"call_id": "1", "name": "ls", "output": "x", "is_error": True, "duration_ms": 1.5}
STEP = {
    "event": "step", "run_id": "a", "step_index": 1, "timestamp": 2.0, "thought": "t", "reasoning": "r", "action": "ls",
    "action_input": "{}", "observation": "x", "is_error": True, "output_tokens": 3, "scores": {"m": 0.5},
    "tool_calls": [{"id": "1", "name": "ls", "arguments": {"path": "."}}], "tool_results": [RESULT],
    "metadata": {"skipped_reason": None, "cache_write_tokens": 3},
}  # fmt: skip
VALID: dict[str, list[Any]] = {
    "jsonl-sink": [
        {"event": "run_start", "timestamp": 1.0, "run_id": "a", "agent_name": "fixer", "task": "t", "metadata": {}},
        {**STEP, "step_index": 0}, STEP, {**STEP, "step_index": 2, "metadata": {"final": True}},
        {"event": "run_finish", "timestamp": 9.0, "run_id": "a", "outcome": "success", "doubts": []},
    ],
    "atif": values_of("atif.json"),
    "otlp": values_of("otlp.jsonl"),
    "langsmith": values_of("langsmith.jsonl"),
    "openai-chat": values_of("openai_chat.jsonl"),
    "openai-responses": values_of("openai_responses.json"),
    "anthropic": values_of("anthropic.json"),
    "langfuse": values_of("langfuse_openai.json"),
    "ai-sdk": values_of("ai_sdk.json"),
    "bedrock": values_of("bedrock.json"),
    "codex": values_of("codex.jsonl"),
    "pi": values_of("pi.jsonl"),
    "mini-swe-agent": values_of("mini_swe_agent.json"),
    "claude-code": values_of("claude_code.jsonl"),
    "reasonblocks": [{"run_id": "a", "steps": [{**STEP, "tokens": 3}]}],
    "langchain": [
        {"run_id": "a", "messages": [
            {"type": "human", "data": {"content": "hi"}},
            {"type": "ai", "data": {"content": [{"type": "text", "text": "t"}], "usage_metadata": {"input_tokens": 3},
                                    "tool_calls": [{"id": "1", "name": "ls", "args": {"path": "."}}]}},
            {"type": "tool", "data": {"content": "x", "tool_call_id": "1", "status": "success"}},
        ]}
    ],
}  # fmt: skip
"""Records of each format that are a run."""


def mutated(data: st.DataObject, name: str) -> list[Any]:
    """The records of a format with up to four values replaced, removed or repeated, anywhere in them."""
    records: list[Any] = json.loads(json.dumps(VALID[name]))
    for _ in range(data.draw(st.integers(0, 4))):
        mutate(data, records)
    return records


def mutate(data: st.DataObject, records: list[Any]) -> None:
    at: Any = records
    for _ in range(data.draw(st.integers(0, 12))):
        below = [
            key
            for key in (at if isinstance(at, dict) else range(len(at)))
            if isinstance(at[key], (dict, list)) and at[key]
        ]
        if not below:
            break
        at = at[data.draw(st.sampled_from(below))]
    if not at:
        return
    key = data.draw(st.sampled_from([*at] if isinstance(at, dict) else [*range(len(at))]))
    change = data.draw(st.sampled_from(["replace", "remove", "repeat"]))
    if change == "replace":
        at[key] = data.draw(anything)
    elif change == "remove":
        del at[key]
    elif isinstance(at, list):
        at.append(at[key])


def check(path: str, name: str) -> None:
    found = list(read_runs(path, format=name))
    assert all(isinstance(item, (RecordedRun, RecordError)) for item in found)
    for item in found:
        assert item.file == path
        if isinstance(item, RecordedRun):
            assert len(item.steps) == len(item.usages)
            for step in item.steps:
                assert all(isinstance(text, str) for text in (step.thought, step.reasoning, step.observation))
                "".join([step.thought, step.reasoning, step.observation, step.action_input]).encode()
            for usage in item.usages:
                assert all(type(count) in (int, NoneType) for count in astuple(usage))


@pytest.mark.parametrize("name", NAMES)
@ANY
@given(record=anything)
def test_any_json_is_a_run_or_an_error(write: Write, name: str, record: object) -> None:
    check(write("any.jsonl", record), name)


@pytest.mark.parametrize("value", [[], {}, [[]], 1, None])
@pytest.mark.parametrize("key", ["event", "type", "role", "run_type", "schema_version", "trajectory_format"])
def test_a_record_whose_kind_is_no_text_is_a_run_or_an_error(write: Write, key: str, value: object) -> None:
    record = {"run_id": "a", "traceId": "t", "payload": {}, "message": {}, "parentId": "b", key: value}
    for shape in (record, [record], {"data": [record]}, {"messages": [record]}, {"messages": [{"content": [record]}]}):
        found = [*read_runs(write("kind.json", shape)), *read_logs(write("kind.json", shape))]
        assert all(isinstance(item, (RecordedRun, RecordError)) for item in found)


MUTATED = settings(deadline=None, max_examples=80, suppress_health_check=[*HealthCheck])


@pytest.mark.parametrize("name", VALID)
@MUTATED
@given(data=st.data())
def test_a_file_with_any_value_in_the_place_of_others_is_runs_or_errors(
    write: Write, name: str, data: st.DataObject
) -> None:
    check(write("mutated.jsonl", *mutated(data, name)), name)


@MUTATED
@given(data=st.data())
def test_a_log_with_any_value_in_the_place_of_others_is_runs_or_errors(write: Write, data: st.DataObject) -> None:
    assert list(read_logs(write("log.jsonl", STEP, *mutated(data, "jsonl-sink"))))


@pytest.mark.parametrize("name", VALID)
def test_the_files_that_are_changed_above_are_runs_with_results(write: Write, name: str) -> None:
    found = [run for run in read_runs(write("valid.jsonl", *VALID[name])) if isinstance(run, RecordedRun)]
    assert [result for run in found for step in run.steps for result in step.tool_results]


@pytest.mark.parametrize("name", RECORD_READERS)
@pytest.mark.parametrize("depth", [90, 900, 3_000, 50_000])
def test_values_of_any_depth_are_a_run_or_an_error(write: Write, name: str, depth: int) -> None:
    for shape in DEEP.get(name, ('{"messages": @}',)):
        for opening, closing in (("[", "]"), ('{"a":', "}"), ('{"parts":[', "]}"), ('{"child_runs":[', "]}")):
            deep = shape.replace("@", opening * depth + "1" + closing * depth)
            found = list(read_runs(write("deep.jsonl", deep), format=name))
            assert found
            assert all(isinstance(item, (RecordedRun, RecordError)) for item in found)


CHAT = '{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}'
ANSWER = '{"key": "gen_ai.output.messages", "value": {"arrayValue": {"values": [@]}}}'
SPAN = f'{{"traceId": "t", "spanId": "s", "attributes": [{CHAT}, {ANSWER}]}}'
CALL = '{"id": "1", "run_type": "%s", "trace_id": "t", "inputs": @, "outputs": {"output": @}, "extra": @}'
DEEP = {
    "reasonblocks": ('{"steps": [{"action": "a", "action_input": @}]}', '{"steps": @}'),
    "jsonl-sink": ('{"event": "step", "run_id": "a", "step_index": 1, "timestamp": 1, "metadata": {"a": @}}',),
    "atif": (
        '{"schema_version": "ATIF-v1.4", "steps": [{"source": "agent", "message": @}]}',
        '{"schema_version": "ATIF-v1.4", "steps": [{"source": "agent", "observation": {"results": [{"content": @}]}}]}',
    ),
    "otlp": (
        f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{SPAN}]}}]}}]}}',
        '{"resourceSpans": @}',
    ),
    "langsmith": (CALL % "llm", CALL % "tool", "[@]"),
}


def test_a_chain_of_spans_of_any_length_is_read(write: Write) -> None:
    count = 20_000
    chat = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    held = [{"traceId": "t", "spanId": str(n), "parentSpanId": str(n + 1), "attributes": chat} for n in range(count)]
    (error,) = read_runs(write("chain.json", {"resourceSpans": [{"scopeSpans": [{"spans": held}]}]}))
    assert isinstance(error, RecordError)


def test_a_chain_of_langsmiths_runs_of_any_length_is_read(write: Write) -> None:
    held = [{"id": str(n), "parent_run_id": str(n + 1), "run_type": "chain", "trace_id": "t"} for n in range(20_000)]
    (error,) = read_runs(write("chain.json", held))
    assert isinstance(error, RecordError)


def test_results_in_any_order_cost_as_much_as_in_that_of_their_calls(write: Write) -> None:
    def work(count: int) -> int:
        calls = [{"id": str(n), "name": f"tool {n}", "args": {}} for n in range(count)]
        held: list[Any] = [{"id": "a", "run_type": "llm", "trace_id": "t", "start_time": "0",
                            "outputs": {"role": "assistant", "content": "x", "tool_calls": calls}}]  # fmt: skip
        held += [
            {"id": f"t{n}", "run_type": "tool", "name": f"tool {n}", "trace_id": "t", "start_time": f"1{count - n:04}"}
            for n in range(count)
        ]
        path = write("results.json", held)
        return lines_run(lambda: check(path, "langsmith"))

    assert work(160) < 6 * work(40)


def test_compactions_cost_as_much_as_other_lines(write: Write) -> None:
    def work(count: int) -> int:
        said = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "x"}}
        held: list[Any] = [{**said, "uuid": "first", "parentUuid": None}]
        for n in range(count):
            held.append({"type": "system", "subtype": "compact_boundary", "uuid": f"b{n}", "parentUuid": None,
                         "logicalParentUuid": f"u{n - 1}" if n else "first", "sessionId": "s"})  # fmt: skip
            held.append({**said, "uuid": f"u{n}", "parentUuid": f"b{n}"})
        path = write("compacted.jsonl", *held)
        return lines_run(lambda: list(read_runs(path)))

    assert work(320) < 6 * work(80)


def test_agents_around_many_others_cost_as_much_as_around_one(write: Write) -> None:
    def work(count: int) -> int:
        held = [span(str(n), str(n - 1) if n else "", "invoke_agent") for n in range(count)]
        for n in range(count):
            held += [span(f"agent {n}", str(count - 1), "invoke_agent"), span(f"call {n}", f"agent {n}", "chat")]
        path = write("agents.json", {"resourceSpans": [{"scopeSpans": [{"spans": held}]}]})
        return lines_run(lambda: check(path, "otlp"))

    assert work(160) < 6 * work(40)


def test_an_answer_around_many_calls_is_read_once(write: Write) -> None:
    def work(count: int) -> int:
        answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "x"}] * count}])
        held = [span(str(n), "0" if n else "", "chat", answer) for n in range(count)]
        path = write("answers.json", {"resourceSpans": [{"scopeSpans": [{"spans": held}]}]})
        return lines_run(lambda: check(path, "otlp"))

    assert work(80) < 6 * work(20)


def span(id: str, parent: str, operation: str, answer: str = '[{"role": "assistant", "content": "x"}]') -> Any:
    named = {"gen_ai.operation.name": operation, **({"gen_ai.output.messages": answer} if operation == "chat" else {})}
    held = [{"key": key, "value": {"stringValue": value}} for key, value in named.items()]
    return {"traceId": "t", "spanId": id, "parentSpanId": parent, "attributes": held}


def lines_run(call: Callable[[], object]) -> int:
    """The number of lines of the readers, and of comparisons of values, that a call runs."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace if "traces" in frame.f_code.co_filename or frame.f_code.co_name == "__eq__" else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_every_shipped_reader_has_a_name_and_a_title() -> None:
    assert len({*NAMES}) == len(NAMES)
    assert all(getattr(reader, "title", "") for reader in READERS)
