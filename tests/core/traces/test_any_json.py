"""No reader raises, whatever JSON it meets; every record is a run or an error of its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.exceptions import RecordError
from reasonblocks.traces import READERS, Reader, RecordedRun, read_logs, read_runs

Write = Callable[..., str]
ANY = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
)  # fmt: skip
WORDS = (
    "step", "run_start", "run_finish", "ATIF-v1.4", "agent", "user", "gen_ai.operation.name", "invoke_agent", "chat",
    "execute_tool", "gen_ai.output.messages", "gen_ai.input.messages", "llm.output_messages.0.message.content",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id", "gen_ai.completion.0.content", "gen_ai.tool.call.id",
    "gen_ai.choice", "[{}]", '[{"role": "assistant", "parts": [{"type": "tool_call"}]}]', "llm", "tool", "chain", "ai",
    "assistant", "human", "tool_call", "tool_call_response", "a", "b", "1",
)  # fmt: skip
anything = st.recursive(
    leaves | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=20,
)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these fields, each of its kind or of any."""
    return st.fixed_dictionaries({}, optional={name: value | anything for name, value in fields.items()})


texts = st.sampled_from(WORDS)
ids = st.sampled_from(["a", "b", "c", ""])
values = st.builds(lambda text: {"stringValue": text}, texts) | anything
attributes = st.lists(st.builds(lambda key, value: {"key": key, "value": value}, texts, values), max_size=5)
spans = st.builds(
    lambda known, rest: {**rest, **known},
    st.fixed_dictionaries({"traceId": ids, "spanId": ids, "attributes": attributes}),
    maybe(parentSpanId=ids, startTimeUnixNano=st.integers(), events=st.lists(maybe(name=texts, attributes=attributes))),
)
calls = st.lists(maybe(id=ids, name=texts, arguments=anything, tool_call_id=ids, function_name=texts), max_size=3)
messages = maybe(role=texts, content=texts, parts=st.lists(anything, max_size=3), tool_calls=calls, type=texts)
SHAPES: dict[str, st.SearchStrategy[Any]] = {
    "jsonl-sink": maybe(event=texts, run_id=ids, step_index=st.integers(), timestamp=st.floats(), tool_calls=calls),
    "atif": st.builds(
        lambda steps, rest: {"schema_version": "ATIF-v1.4", **rest, "steps": steps},
        st.lists(maybe(source=texts, message=texts, tool_calls=calls, observation=maybe(results=st.lists(anything)))),
        maybe(session_id=ids, agent=maybe(name=texts)),
    ),
    "otlp": st.builds(
        lambda spans: {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, st.lists(spans | anything, max_size=6)
    ),
    "langsmith": st.lists(
        st.builds(
            lambda known, rest: {**rest, **known},
            st.fixed_dictionaries({"id": ids, "run_type": texts, "trace_id": ids}),
            maybe(
                parent_run_id=ids, dotted_order=texts, error=texts, inputs=maybe(messages=st.lists(messages)),
                outputs=maybe(generations=st.lists(st.lists(maybe(message=maybe(kwargs=messages)))), output=messages),
            ),
        )
        | anything,
        max_size=6,
    ),
}  # fmt: skip


def check(path: str, name: str) -> None:
    found = list(read_runs(path, format=name))
    assert all(isinstance(item, (RecordedRun, RecordError)) for item in found)
    for item in found:
        assert item.file == path
        assert item.line is None or item.line == 1
        if isinstance(item, RecordedRun):
            assert len(item.steps) == len(item.usages)
            assert all(isinstance(text, str) for step in item.steps for text in (step.thought, step.observation))


@pytest.mark.parametrize("name", NAMES)
@ANY
@given(record=anything)
def test_any_json_is_a_run_or_an_error(write: Write, name: str, record: object) -> None:
    check(write("any.jsonl", record), name)


@pytest.mark.parametrize("name", SHAPES)
@settings(deadline=None, max_examples=150, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_json_of_the_formats_shape_is_a_run_or_an_error(write: Write, name: str, data: st.DataObject) -> None:
    check(write("shaped.jsonl", data.draw(SHAPES[name])), name)


@ANY
@given(record=SHAPES["jsonl-sink"])
def test_any_log_is_runs_or_errors(write: Write, record: object) -> None:
    list(read_logs(write("log.jsonl", {"event": "step", "run_id": "a"}, record)))


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


def test_every_shipped_reader_has_a_name_and_a_title() -> None:
    assert len({*NAMES}) == len(NAMES)
    assert all(getattr(reader, "title", "") for reader in READERS)


FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json*"))


@pytest.mark.parametrize("path", FIXTURES, ids=[path.name for path in FIXTURES])
def test_a_fixture_is_recognised_by_one_reader(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    values = [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    claims = {
        reader.name for value in values for reader in READERS if isinstance(reader, Reader) and reader.sniff(value)
    }
    assert len(claims) == 1
