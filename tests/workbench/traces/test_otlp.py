"""Spans of agents as OTLP/JSON: a file that our own sink exported, and other instrumentations' attributes by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import FIXTURES, Write, fault, runs

Json = dict[str, Any]
FILE = FIXTURES / "otlp.jsonl"
"""The export of `OpenTelemetrySink` for a scripted run, as two requests."""


def any_value(value: object) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": value}


def attributes(named: Mapping[str, object]) -> list[Json]:
    return [{"key": name, "value": any_value(value)} for name, value in named.items()]


def span(
    id: str, at: int, parent: str | None = "agent", *, failed: bool = False, events: Any = (), **named: Any
) -> Json:
    """A span; `_` in a name of an attribute stands for a dot, `__` for itself."""
    return {
        "traceId": "trace", "spanId": id, "parentSpanId": parent or "", "name": id, "startTimeUnixNano": str(at),
        "attributes": attributes({name.replace("__", "\0").replace("_", ".").replace("\0", "_"): value
                                  for name, value in named.items()}),
        "events": [{"name": name, "attributes": attributes(held)} for name, held in events],
        "status": {"code": 2, "message": "it broke"} if failed else {},
    }  # fmt: skip


def agent(**named: Any) -> Json:
    return span("agent", 0, None, gen__ai_operation_name="invoke_agent", gen__ai_agent_name="fixer", **named)


def chat(id: str, at: int, *parts: Json, given: Any = None, parent: str | None = "agent", **named: Any) -> Json:
    held: Json = {} if given is None else {"gen__ai_input_messages": json.dumps(given)}
    if parts:
        held["gen__ai_output_messages"] = json.dumps([{"role": "assistant", "parts": [*parts]}])
    return span(id, at, parent, gen__ai_operation_name="chat", **held, **named)


def text(content: str) -> Json:
    return {"type": "text", "content": content}


def call(id: str, name: str = "ls", arguments: Any = None) -> Json:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments or {}}


def tool(at: int, id: str = "", result: Any = "x", *, name: str = "ls", failed: bool = False, **named: Any) -> Json:
    return span(
        f"tool-{at}", at, failed=failed, gen__ai_operation_name="execute_tool", gen__ai_tool_name=name,
        gen__ai_tool_call_id=id, gen__ai_tool_call_result=result, **named,
    )  # fmt: skip


def export(*spans: Json, service: str = "checkout") -> Json:
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {}, "spans": [*spans]}]}]}


def only(write: Write, *spans: Json) -> RecordedRun:
    (run,) = runs(write("a.json", export(*spans)))
    return run


def test_our_own_export_has_the_steps_of_the_run() -> None:
    (run,) = runs(FILE)
    assert [step.thought for step in run.steps] == [
        "I look at the parser.", "Both callers, and the tests.", "", "The parser is fixed.",
    ]  # fmt: skip
    assert (run.steps[1].reasoning, run.steps[2].reasoning) == (
        "Something else may call it.",
        "No idea what that means.",
    )
    assert [(r.call_id, r.name, r.is_error) for r in run.steps[1].tool_results] == [
        ("b", "read_file", None), ("c", "bash", True),
    ]  # fmt: skip
    assert run.usages[0] == Usage(input=100, output=10, cache_read=40, cache_write=5)
    assert (run.run_id, run.source, run.outcome, run.task, run.model, run.task_profile, run.line) == (
        "recorded", "fixer", "success", "Fix the parser – żółć.", "agent-model", "coding", 1,
    )  # fmt: skip


def test_calls_are_ordered_by_their_start_and_results_go_to_their_call(write: Write) -> None:
    run = only(
        write, chat("two", 5, text("Then b."), call("b")), tool(6, "b", "of b"), tool(3, "a", "of a"),
        chat("one", 2, text("First a."), call("a", arguments={"path": "."})), agent(), tool(9, "a", "late, of a"),
    )  # fmt: skip
    assert run.steps == (
        Step(
            thought="First a.",
            tool_calls=(ToolCall(id="a", name="ls", arguments={"path": "."}),),
            tool_results=(
                ToolResult(call_id="a", name="ls", output="of a"),
                ToolResult(call_id="a", name="ls", output="late, of a"),
            ),
        ),
        Step(
            thought="Then b.",
            tool_calls=(ToolCall(id="b", name="ls", arguments={}),),
            tool_results=(ToolResult(call_id="b", name="ls", output="of b"),),
        ),
    )


def test_results_without_a_span_are_read_from_the_next_input(write: Write) -> None:
    given = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": {"files": 2}}]}]
    run = only(write, agent(), chat("one", 1, call("a")), chat("two", 2, text("Done."), given=given))
    assert run.steps[0].tool_results == (ToolResult(call_id="a", name="ls", output='{"files": 2}'),)


def test_a_tool_span_without_a_text_gets_it_from_the_next_input(write: Write) -> None:
    given = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": "two files"}]}]
    run = only(write, agent(), chat("one", 1, call("a")), tool(2, "a", ""), chat("two", 3, text("Done."), given=given))
    assert [result.output for result in run.steps[0].tool_results] == ["two files"]


def test_ids_that_repeat_in_each_answer_belong_to_the_answer_before_the_result(write: Write) -> None:
    spans = [agent(), chat("one", 1, call("0")), tool(2, "0", "1st"), chat("two", 3, call("0")), tool(4, "0", "2nd")]
    run = only(write, *spans)
    assert [[result.output for result in step.tool_results] for step in run.steps] == [["1st"], ["2nd"]]


def test_ids_that_repeat_in_the_messages_of_each_call_belong_to_their_answers(write: Write) -> None:
    def results(*outputs: str) -> list[Json]:
        held = [{"type": "tool_call_response", "id": "0", "response": output} for output in outputs]
        return [{"role": "tool", "parts": [part]} for part in held]

    spans = [
        agent(), chat("one", 1, call("0")), chat("two", 2, call("0"), given=results("1st")),
        chat("three", 3, text("Done."), given=results("1st", "2nd")),
    ]  # fmt: skip
    assert [[result.output for result in step.tool_results] for step in only(write, *spans).steps] == [
        ["1st"], ["2nd"], [],
    ]  # fmt: skip


def test_what_the_user_says_after_an_answer_belongs_to_the_next_step(write: Write) -> None:
    def said(role: str, content: str) -> Json:
        return {"role": role, "parts": [text(content)]}

    given = [said("user", "Fix it.")]
    spans = [agent(), chat("one", 1, text("Hm."), given=given)]
    given = [*given, said("assistant", "Hm."), said("user", "Go on.")]
    spans.append(chat("two", 2, text("Hm."), given=given))
    spans.append(chat("three", 3, text("Done."), given=[*given, said("assistant", "Hm.")]))
    assert [step.user_text for step in only(write, *spans).steps] == ["", "Go on.", ""]


def test_a_tool_without_an_id_answers_the_open_call_of_its_name(write: Write) -> None:
    run = only(
        write, agent(), chat("one", 1, call("a"), call("b", "cat"), call("c")), tool(2, "", "1"), tool(3, "", "2"),
        tool(4, "", "3", name="cat"), chat("two", 5, text("Done.")),
    )  # fmt: skip
    assert [(result.call_id, result.output) for result in run.steps[0].tool_results] == [
        ("a", "1"),
        ("c", "2"),
        ("b", "3"),
    ]


def test_a_tool_that_no_answer_names_is_a_call_of_the_answer_before_it(write: Write) -> None:
    run = only(
        write, agent(), chat("one", 1, text("I look.")), tool(2, "a", gen__ai_tool_call_arguments='{"path": "."}')
    )
    assert run.steps[0].tool_calls == (ToolCall(id="a", name="ls", arguments={"path": "."}),)
    assert run.steps[0].observation == "x"


def test_a_tool_with_the_status_of_an_error_failed(write: Write) -> None:
    run = only(write, agent(), chat("one", 1, call("a")), tool(2, "a", "no", failed=True))
    assert run.steps[0].is_error is True


def test_the_status_of_the_agents_span_is_its_failure(write: Write) -> None:
    broken = agent(error_type="TimeoutError")
    broken["status"] = {"code": "STATUS_CODE_ERROR"}
    assert only(write, broken, chat("one", 1, text("I look."))).outcome == "failure: TimeoutError"
    assert only(write, agent(), chat("one", 1, text("I look."))).outcome is None


def test_each_agent_of_a_trace_is_a_run_and_one_within_another_names_it(write: Write) -> None:
    inner = span("inner", 3, "tool-2", gen__ai_operation_name="invoke_agent", gen__ai_agent_name="helper")
    found = runs(write("a.json", export(
        agent(reasonblocks_run_id="outer"), chat("one", 1, text("I ask."), call("a", "ask")), tool(2, "a", name="ask"),
        inner, chat("in", 4, text("Inside."), parent="inner"),
    )))  # fmt: skip
    assert [(run.run_id, run.source, run.parent_run_id, len(run.steps)) for run in found] == [
        ("outer", "fixer", None, 1), ("trace-inner", "helper", "outer", 1),
    ]  # fmt: skip


def test_an_agent_that_only_runs_others_is_no_run_and_its_failure_not_theirs(write: Write) -> None:
    team = span("team", 0, None, failed=True, gen__ai_operation_name="invoke_agent", gen__ai_agent_name="team")
    members = [
        span(id, at, "team", gen__ai_operation_name="invoke_agent", gen__ai_agent_name=id)
        for at, id in ((1, "a"), (3, "b"))
    ]
    calls = [chat("one", 2, text("I look."), parent="a"), chat("two", 4, text("Me too."), parent="b")]
    found = runs(write("a.json", export(team, *members, *calls)))
    assert [(run.source, run.outcome, run.parent_run_id) for run in found] == [("a", None, None), ("b", None, None)]


def test_an_agents_span_around_another_of_the_same_agent_has_its_name_and_failure(write: Write) -> None:
    around = span("around", 0, None, failed=True, gen__ai_operation_name="invoke_agent", gen__ai_agent_name="fixer")
    inner = span("inner", 1, "around", openinference_span_kind="AGENT")
    run = only(write, around, inner, chat("one", 2, text("I look."), parent="inner"))
    assert (run.source, run.outcome, run.parent_run_id) == ("fixer", "failure: it broke", None)


def test_a_tools_span_around_another_of_the_same_call_counts_once(write: Write) -> None:
    outer = span("outer", 2, openinference_span_kind="TOOL", tool_name="ls", output_value="no such file")
    inner = span("inner", 3, "outer", failed=True, gen__ai_operation_name="execute_tool", gen__ai_tool_name="ls",
                 gen__ai_tool_call_id="b")  # fmt: skip
    run = only(write, agent(), chat("one", 1, call("a"), call("b")), outer, inner)
    assert run.steps[0].tool_results == (ToolResult(call_id="b", name="ls", output="no such file", is_error=True),)


def test_a_trace_without_an_agent_is_a_run(write: Write) -> None:
    given = [{"role": "system", "parts": [text("Be good.")]}, {"role": "user", "parts": [text("Fix it.")]}]
    run = only(write, chat("one", 1, text("I look."), given=given, parent="http", gen__ai_response_model="m"))
    assert (run.run_id, run.source, run.task, run.model) == ("trace", "checkout", "Fix it.", "m")


def test_a_clients_span_within_that_of_a_framework_is_the_same_call(write: Write) -> None:
    run = only(write, agent(), chat("outer", 1, text("Once.")), chat("client", 2, text("Once."), parent="outer"))
    assert [step.thought for step in run.steps] == ["Once."]
    run = only(write, agent(), chat("outer", 1), chat("client", 2, text("Once."), parent="outer"))
    assert [step.thought for step in run.steps] == ["Once."]


def test_a_call_that_failed_is_no_step(write: Write) -> None:
    run = only(write, agent(), chat("one", 1, failed=True), chat("two", 2, text("Done.")))
    assert run.steps == (Step(thought="Done."),)


def test_spans_without_texts_are_refused_with_the_variable_that_records_them(write: Write) -> None:
    refused = fault(write("a.json", export(agent(), chat("one", 1), tool(2, "a"))))
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in refused.reason


def test_messages_may_be_values_instead_of_json(write: Write) -> None:
    held = [{"role": "assistant", "parts": [text("I look."), call("a", arguments={"depth": 2, "deep": [1.5, True]})]}]
    run = only(write, agent(), span("one", 1, gen__ai_operation_name="chat", gen__ai_output_messages=held))
    assert run.steps[0].tool_calls == (ToolCall(id="a", name="ls", arguments={"depth": 2, "deep": [1.5, True]}),)


MADE = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
OLDER: dict[str, tuple[list[tuple[str, Json]], Json]] = {
    "choice": ([
        ("gen_ai.user.message", {"content": "Fix it."}),
        ("gen_ai.choice", {"index": 0, "message": json.dumps({"content": "I look.", "tool_calls": [MADE]})}),
    ], {}),
    "choice in values": ([
        ("gen_ai.user.message", {"content": "Fix it."}),
        ("gen_ai.choice", {"message": {"content": "I look.", "tool_calls": [MADE]}}),
    ], {}),
    "content events": ([
        ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": "Fix it."}])}),
        ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([{"role": "assistant", "content": "I look.",
                                                                         "tool_calls": [MADE]}])}),
    ], {}),
    "details event": ([
        ("gen_ai.client.inference.operation.details", {
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [text("Fix it.")]}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [
                text("I look."), call("a", arguments={"path": "."})]}]),
        }),
    ], {}),
    "openinference": ([], {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Fix it.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "I look.",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "a",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "ls",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"path": "."}',
        "llm.token_count.prompt": 9,
        "llm.token_count.completion": 3,
        "llm.token_count.prompt_details.cache_read": 4,
    }),
    "openllmetry": ([], {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Fix it.",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "I look.",
        "gen_ai.completion.0.tool_calls.0.id": "a",
        "gen_ai.completion.0.tool_calls.0.name": "ls",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"path": "."}',
        "gen_ai.usage.prompt_tokens": 9,
        "gen_ai.usage.completion_tokens": 3,
        "gen_ai.usage.cache_read_input_tokens": 4,
    }),
}  # fmt: skip


@pytest.mark.parametrize("form", OLDER)
def test_every_way_to_write_a_message_is_the_same_step(write: Write, form: str) -> None:
    events, named = OLDER[form]
    held = span("one", 1, None, events=events)
    kind = {} if "openinference.span.kind" in named else {"gen_ai.operation.name": "chat"}
    held["attributes"] = attributes({**kind, **named})
    run = only(write, held)
    assert run.steps == (Step(thought="I look.", tool_calls=(ToolCall(id="a", name="ls", arguments={"path": "."}),)),)
    assert run.task == "Fix it."
    assert run.usages == (Usage(input=9, output=3, cache_read=4) if named else Usage(),)


def test_the_tools_and_agents_of_openinference_are_read(write: Write) -> None:
    held = [
        span("agent", 0, None, openinference_span_kind="AGENT", agent_name="fixer", input_value="Fix it."),
        span("one", 1, openinference_span_kind="LLM", llm_output__messages_0_message_content="I look."),
        span(
            "two", 2, openinference_span_kind="TOOL", tool_name="ls", input_value='{"path": "."}', output_value="a.py"
        ),
    ]
    run = only(write, *held)
    assert (run.source, run.task) == ("fixer", "Fix it.")
    assert run.steps == (
        Step(
            thought="I look.",
            tool_calls=(ToolCall(id="two", name="ls", arguments={"path": "."}),),
            tool_results=(ToolResult(call_id="two", name="ls", output="a.py"),),
        ),
    )


def test_a_trace_may_lie_in_many_requests_and_others_between(write: Write) -> None:
    held = [agent(), chat("one", 1, text("I look."), call("a")), tool(2, "a"), chat("two", 3, text("Done."))]
    other = [{**part, "traceId": "other"} for part in held]
    lines = [export(part) for pair in zip(held, other, strict=True) for part in pair]
    found = runs(write("a.jsonl", *lines))
    assert [(run.run_id, len(run.steps), run.line) for run in found] == [("trace-agent", 2, 1), ("other-agent", 2, 2)]


def test_requests_of_logs_and_metrics_between_are_passed_over(write: Write) -> None:
    good = export(agent(), chat("one", 1, text("Done.")))
    assert len(runs(write("a.jsonl", {"resourceMetrics": []}, good, {"resourceLogs": []}))) == 1


def test_a_malformed_request_costs_only_its_line(write: Write) -> None:
    good = export(agent(), chat("one", 1, text("Done.")))
    bad = export({"spanId": "no trace"})
    refused, run = read_runs(write("a.jsonl", bad, good))
    assert isinstance(refused, RecordError)
    assert (refused.line, "traceId" in refused.reason) == (1, True)
    assert isinstance(run, RecordedRun)


def test_spans_in_a_ring_are_read(write: Write) -> None:
    ring = [chat("a", 1, text("One."), parent="x"), span("x", 2, "y"), span("y", 2, "x")]
    assert only(write, *ring).steps == (Step(thought="One."),)


def test_spans_of_something_else_are_one_error(write: Write) -> None:
    refused = fault(write("a.jsonl", export(span("GET /", 1)), export(span("SELECT", 2))))
    assert "no span of a model call" in refused.reason
