"""With `calls=True`, each step has spans of its call to the model and of its tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonblocks.types import ToolCall, ToolResult
from tests.core.otel.recorded import TURNS, record
from tests.core.otel.world import CONTENT, Emitted, Memory, emitted, finished, started, step
from tests.core.world import begin, called, client, run


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Emitted:
    monkeypatch.setenv(CONTENT, "true")
    memory = Memory()
    record(memory)
    return memory.run


def test_a_step_has_its_call_and_its_tools(recorded: Emitted) -> None:
    chat = "chat agent-model"
    assert recorded.names == ("invoke_agent fixer", [
        ("reasonblocks.step", [chat, "execute_tool read_file"]),
        ("reasonblocks.step", [chat, "execute_tool read_file", "execute_tool bash"]),
        ("reasonblocks.step", [chat, "execute_tool list_files"]),
        ("reasonblocks.step", [chat]),
        "reasonblocks.step",
    ])  # fmt: skip


def test_without_calls_there_are_none() -> None:
    memory = emitted(started(), step(0, step_model="m"), step(1, action="bash"), finished())
    assert memory.run.names == ("invoke_agent", ["reasonblocks.step"] * 2)


def test_a_call_is_a_client_span_with_model_and_tokens(recorded: Emitted) -> None:
    call = recorded.below[0].below[0]
    assert call.span.kind.name == "CLIENT"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "agent-model",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 5,
        "openinference.span.kind": "LLM",
        "llm.model_name": "agent-model",
        "llm.token_count.prompt": 100,
        "llm.token_count.completion": 10,
        "llm.token_count.total": 110,
        "llm.token_count.prompt_details.cache_read": 40,
        "llm.token_count.prompt_details.cache_write": 5,
    }
    assert {key: call.attributes.get(key) for key in expected} == expected


def test_tokens_that_are_not_known_are_left_out() -> None:
    (call,) = emitted(started(), step(0, step_model="m"), finished(), calls=True).run.named("chat")
    assert [key for key in call.attributes if "token" in key] == []


def test_an_answer_is_a_message_of_both_conventions(recorded: Emitted) -> None:
    attributes = recorded.below[1].below[0].attributes
    turn = TURNS[1]
    (message,) = json.loads(attributes["gen_ai.output.messages"])
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in turn.tool_calls
    ]
    assert message == {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": turn.reasoning}, {"type": "text", "content": turn.text}, *calls],
        "finish_reason": "tool_call",
    }
    start = "llm.output_messages.0.message"
    assert (attributes[f"{start}.role"], attributes[f"{start}.content"]) == ("assistant", turn.text)
    assert attributes[f"{start}.tool_calls.1.tool_call.function.name"] == "bash"
    assert json.loads(attributes[f"{start}.tool_calls.1.tool_call.function.arguments"]) == {"command": "pytest -q"}


def test_the_last_answer_stops(recorded: Emitted) -> None:
    (message,) = json.loads(recorded.below[3].below[0].attributes["gen_ai.output.messages"])
    assert (message["finish_reason"], message["parts"]) == (
        "stop", [{"type": "text", "content": "The parser is fixed."}],
    )  # fmt: skip


def test_a_tool_call_has_arguments_and_result(recorded: Emitted) -> None:
    tool = recorded.below[1].below[1]
    arguments = tool.attributes["gen_ai.tool.call.arguments"]
    assert json.loads(arguments) == TURNS[1].tool_calls[0].arguments
    expected = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.call.id": "b",
        "gen_ai.tool.call.result": "parse(line)",
        "openinference.span.kind": "TOOL",
        "tool.name": "read_file",
        "tool.id": "b",
        "input.value": arguments,
        "output.value": "parse(line)",
    }
    assert {key: tool.attributes.get(key) for key in expected} == expected


def test_a_failed_tool_is_an_error(recorded: Emitted) -> None:
    tools = recorded.named("execute_tool")
    assert [(tool.status, tool.attributes.get("error.type")) for tool in tools] == [
        ("UNSET", None), ("UNSET", None), ("ERROR", "tool_error"), ("UNSET", None),
    ]  # fmt: skip
    assert [tool.attributes.get("reasonblocks.tool.is_error") for tool in tools] == [False, None, True, None]


def test_no_content_leaves_names_ids_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONTENT, raising=False)
    memory = Memory()
    record(memory)
    (tool,) = [tool for tool in memory.run.named("execute_tool") if tool.status == "ERROR"]
    assert dict(tool.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": "c",
        "openinference.span.kind": "TOOL",
        "tool.name": "bash",
        "tool.id": "c",
        "error.type": "tool_error",
        "reasonblocks.run.id": "recorded",
        "reasonblocks.step.index": 1,
        "reasonblocks.tool.is_error": True,
    }


# ------------------------------------------------------------ times


def timed(latency_ms: Any = None, **more: Any) -> list[Emitted]:
    """The spans below step 0, which lasts from 101 to 102 seconds."""
    metadata = {} if latency_ms is None else {"latency_ms": latency_ms}
    memory = emitted(started(), step(0, metadata=metadata), step(1, **more), finished(), calls=True)
    return list(memory.run.below[0].below)


def test_a_call_lasts_for_its_latency_and_the_tool_for_the_rest_of_the_step() -> None:
    call, tool = timed(250.0, action="bash", observation="ok")
    assert call.times == (101.0, 101.25)
    assert tool.times == pytest.approx((101.25, 102.0))


def test_without_a_latency_the_call_lasts_as_long_as_the_step() -> None:
    (call,) = timed()
    assert call.times == (101.0, 102.0)


@pytest.mark.parametrize("latency_ms", [5_000, -3, float("inf"), float("nan"), "fast", True])
def test_a_call_ends_within_its_step(latency_ms: Any) -> None:
    call, tool = timed(latency_ms, action="bash", observation="ok")
    assert 101.0 == call.times[0] <= call.times[1] <= 102.0
    assert 101.0 <= tool.times[0] <= tool.times[1]
    assert tool.times[1] == pytest.approx(102.0)


def test_a_tool_that_reports_its_duration_lasts_that_long() -> None:
    calls = (ToolCall(id="a", name="one"), ToolCall(id="b", name="two"))
    results = (
        ToolResult(call_id="a", output="", duration_ms=500.0), ToolResult(call_id="b", output="", duration_ms=9e9),
    )  # fmt: skip
    _, one, two = timed(100.0, tool_calls=calls, tool_results=results)
    assert one.times == pytest.approx((101.1, 101.6))
    assert two.times == pytest.approx((101.1, 102.0))


def test_tools_start_in_their_order_after_the_call(recorded: Emitted) -> None:
    starts = [one.span.start_time or 0 for one in recorded.below[1].below]
    assert starts == sorted(set(starts))


# ------------------------------------------------------------ calls that are different


def test_the_final_step_and_a_call_that_was_never_made_have_no_call() -> None:
    final, never = step(2, metadata={"final": True}), step(1, metadata={"error": "not called"})
    run = emitted(started(), step(0), never, final, finished(), calls=True).run
    assert [one.names for one in run.below] == [
        ("reasonblocks.step", ["chat"]), "reasonblocks.step", "reasonblocks.step",
    ]  # fmt: skip


def test_a_failed_call_is_an_error() -> None:
    (call,) = emitted(
        started(), step(0, metadata={"error": "TimeoutError"}), finished(outcome="failure: TimeoutError"), calls=True
    ).run.named("chat")
    assert (call.status, call.attributes["error.type"]) == ("ERROR", "TimeoutError")


def test_an_auxiliary_call_does_not_end_the_step_around_it() -> None:
    aside = step(1, at=101.5, metadata={"skipped_reason": "auxiliary", "latency_ms": 200.0}, tokens=3)
    run = emitted(
        started(), step(0), aside, step(2, at=103.0, action="bash", observation="ok"), finished(), calls=True
    ).run
    assert [(one.attributes["reasonblocks.step.index"], one.times) for one in run.below] == [
        (0, (101.0, 103.0)), (1, (101.5, 101.7)), (2, (103.0, 110.0)),
    ]  # fmt: skip
    assert [one.names for one in run.below][:2] == [
        ("reasonblocks.step", ["chat", "execute_tool bash"]), ("reasonblocks.step", ["chat"]),
    ]  # fmt: skip


def test_a_tool_has_a_span_if_it_has_a_result() -> None:
    calls = (ToolCall(id="a", name="one"), ToolCall(id="a", name="two"), ToolCall(id="b", name=""))
    results = (
        ToolResult(call_id="b", output="0"), ToolResult(call_id="a", output="1"),
        ToolResult(call_id="z", output="2", name="lost"),
    )  # fmt: skip
    tools = timed(tool_calls=calls, tool_results=results)[1:]
    assert [tool.name for tool in tools] == ["execute_tool one", "execute_tool", "execute_tool lost"]


def test_a_real_call_has_its_latency() -> None:
    memory = Memory()
    session = client(sinks=[memory.sink(calls=True)]).session()
    run(session, 1)
    session.end_step(begin(session, 1), called(1))
    session.close()
    calls = memory.run.named("chat")
    assert len(calls) == 2
    for call in calls:
        assert call.times[1] - call.times[0] <= 0.003 + 1e-6
