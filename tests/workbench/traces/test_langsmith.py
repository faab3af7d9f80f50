"""Runs exported from LangSmith: a file that LangChain's tracer and LangSmith's client wrote, and others by hand."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.workbench.traces.conftest import FIXTURES, Write, fault, runs

Node = dict[str, Any]
FILE = FIXTURES / "langsmith.jsonl"
"""The requests of `langsmith` 0.15 for two runs of a scripted agent of LangChain 1.4, to a server of the test's own."""
NODES: list[Node] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def node(id: str, run_type: str, at: int, parent: str | None = "root", **fields: Any) -> Node:
    order = f"20260101T0000000000{at:02}Z{id}"
    above = "" if parent is None else f"20260101T000000000000Z{parent}."
    return {
        "id": id, "run_type": run_type, "trace_id": "root", "parent_run_id": parent, "name": id,
        "dotted_order": above + order, "inputs": {}, "outputs": None, **fields,
    }  # fmt: skip


ROOT = node("root", "chain", 0, None, name="fixer", inputs={"input": "Fix it."})


def chat(id: str, at: int, message: Node, **fields: Any) -> Node:
    return node(id, "llm", at, outputs={"choices": [{"message": {"role": "assistant", **message}}]}, **fields)


def test_the_model_calls_of_a_trace_are_its_steps_with_the_results_of_its_tools() -> None:
    read = (("c1", "a.py"), ("c2", "b.py"))
    calls = tuple(ToolCall(id=id, name="read_file", arguments={"path": path}) for id, path in read)
    results = tuple(ToolResult(call_id=id, name="read_file", output=f"text of {path}") for id, path in read)
    assert runs(FILE)[0].steps == (
        Step(thought="I look.", tool_calls=calls, tool_results=results),
        Step(thought="Done."),
    )
    assert runs(FILE)[0].usages == (Usage(input=100, output=10), Usage())


def test_ids_that_repeat_in_each_answer_belong_to_the_answer_before_the_result(write: Write) -> None:
    made = {"content": "", "tool_calls": [{"id": "call_0", "function": {"name": "ls", "arguments": "{}"}}]}
    outputs = [{"output": {"content": output, "tool_call_id": "call_0"}} for output in ("1st", "2nd")]
    nodes = [
        ROOT, chat("a", 1, made), node("b", "tool", 2, outputs=outputs[0]), chat("c", 3, made),
        node("d", "tool", 4, outputs=outputs[1]),
    ]  # fmt: skip
    (run,) = runs(write("a.jsonl", *nodes))
    assert [[result.output for result in step.tool_results] for step in run.steps] == [["1st"], ["2nd"]]


def test_the_root_describes_the_run_and_its_error_is_the_failure() -> None:
    first, second = runs(FILE)
    assert (first.source, first.task, first.model, first.outcome) == ("fixer", "Fix it.", "m-1", None)
    assert second.outcome == "failure: ValueError('no pytest')"
    assert second.steps[0].tool_results == (
        ToolResult(call_id="c3", name="run_tests", output="ValueError('no pytest')", is_error=True),
    )
    assert first.run_id != second.run_id


@pytest.mark.parametrize("order", ["list", "reversed", "nested"])
def test_the_order_and_the_form_of_the_export_change_nothing(write: Write, order: str) -> None:
    values: list[object] = [NODES] if order == "list" else list(reversed(NODES))
    if order == "nested":
        roots = [entry for entry in NODES if "parent_run_id" not in entry]
        others = [entry for entry in NODES if "parent_run_id" in entry]
        values = [{**r, "child_runs": [n for n in others if n["trace_id"] == r["trace_id"]]} for r in roots]
    found = {run.run_id: (run.steps, run.usages, run.outcome, run.task) for run in runs(write("a.jsonl", *values))}
    assert found == {run.run_id: (run.steps, run.usages, run.outcome, run.task) for run in runs(FILE)}


def test_openai_messages_and_their_usage_are_read(write: Write) -> None:
    message = {
        "content": "I look.",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}],
    }
    first = chat("one", 1, message)
    first["outputs"]["usage"] = {
        "prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4},
    }  # fmt: skip
    first["extra"] = {"metadata": {"ls_model_name": "m"}}
    tool = node("ls", "tool", 2, outputs={"output": "a.py"}, inputs={"input": "{}"})
    last = chat("two", 3, {"content": "Done."})
    (run,) = runs(write("a.jsonl", ROOT, first, tool, last))
    assert run.steps == (
        Step(
            thought="I look.",
            tool_calls=(ToolCall(id="c", name="ls", arguments={"path": "."}),),
            tool_results=(ToolResult(call_id="c", name="ls", output="a.py"),),
        ),
        Step(thought="Done."),
    )
    assert (run.usages[0], run.model, run.task) == (Usage(input=9, output=3, cache_read=4), "m", "Fix it.")


def langchain(kind: str, content: str) -> Node:
    return {"lc": 1, "type": "constructor", "id": ["m"], "kwargs": {"type": kind, "content": content}}


@pytest.mark.parametrize(
    ("ask", "answer", "result", "more"),
    [
        (langchain("human", "Fix it."), langchain("ai", "Hm."), langchain("tool", "ok"), langchain("human", "Go on.")),
        (["user", "Fix it."], ["assistant", "Hm."], {"role": "tool", "content": "ok"}, ["user", "Go on."]),
    ],
)
def test_what_the_user_says_after_an_answer_belongs_to_the_next_step(
    write: Write, ask: object, answer: object, result: object, more: object
) -> None:
    given = [[langchain("system", "Be good."), ask]]
    for new in ([answer, result], [more], [answer]):
        given.append([*given[-1], *new])
    calls = [chat(f"call-{n}", n, {"content": "Hm."}, inputs={"messages": one}) for n, one in enumerate(given, 1)]
    aside = chat("title", 9, {"content": "Title"}, inputs={"messages": given[0]})
    (run,) = runs(write("a.jsonl", ROOT, *calls, aside))
    assert [step.user_text for step in run.steps] == ["", "", "Go on.", "", ""]


def test_anthropic_blocks_are_read(write: Write) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c", "name": "ls", "input": {"path": "."}},
    ]
    call = node("one", "llm", 1, outputs={"role": "assistant", "content": blocks, "usage": {"output_tokens": 3}})
    (run,) = runs(write("a.jsonl", ROOT, call))
    assert run.steps == (
        Step(thought="I look.", reasoning="Hm.", tool_calls=(ToolCall(id="c", name="ls", arguments={"path": "."}),)),
    )
    assert run.usages == (Usage(output=3),)


def test_values_that_are_json_in_text_are_read(write: Write) -> None:
    call = chat("one", 1, {"content": "Done."})
    call["outputs"] = json.dumps(call["outputs"])
    (run,) = runs(write("a.jsonl", {**ROOT, "inputs": json.dumps(ROOT["inputs"])}, call))
    assert (run.steps, run.task) == ((Step(thought="Done."),), "Fix it.")


def test_calls_of_a_subagent_below_a_tool_are_left_out(write: Write) -> None:
    tool = node("ask", "tool", 2, outputs={"output": "yes"})
    inner = chat("inner", 3, {"content": "Inside."}, parent="chain")
    chain = node("chain", "chain", 3, "ask")
    (run,) = runs(write("a.jsonl", ROOT, chat("one", 1, {"content": "I ask."}), tool, chain, inner))
    assert [step.thought for step in run.steps] == ["I ask."]
    assert run.steps[0].observation == "yes"


def test_a_call_that_failed_is_no_step(write: Write) -> None:
    failed = node("one", "llm", 1, error="RateLimitError()Traceback (most recent call last):\n ...")
    (run,) = runs(write("a.jsonl", ROOT, failed, chat("two", 2, {"content": "Done."})))
    assert run.steps == (Step(thought="Done."),)


def test_a_run_that_waits_for_a_person_has_not_failed(write: Write) -> None:
    root = {**ROOT, "error": "GraphInterrupt((Interrupt(value='ok?'),))"}
    (run,) = runs(write("a.jsonl", root, chat("one", 1, {"content": "May I?"})))
    assert run.outcome is None


def test_a_trace_without_an_answer_is_said(write: Write) -> None:
    assert "no answer of a model" in fault(write("a.jsonl", ROOT)).reason


def test_a_malformed_run_costs_only_its_line(write: Write) -> None:
    error, run = read_runs(write("a.jsonl", ROOT, {"id": [], "run_type": 5}, chat("one", 1, {"content": "Done."})))
    assert isinstance(error, RecordError)
    assert (error.line, "id" in error.reason) == (2, True)
    assert isinstance(run, RecordedRun)


def test_memory_holds_no_inputs_of_model_calls(write: Write) -> None:
    history = {"messages": [{"role": "user", "content": "x" * 100_000}] * 2}
    calls = (chat(f"call-{n}", n, {"content": "Done."}, inputs=history) for n in range(99))
    path = write("a.jsonl", ROOT, *calls)
    tracemalloc.start()
    try:
        assert [len(run.steps) for run in runs(path)] == [99]
        assert tracemalloc.get_traced_memory()[1] < 4_000_000  # the file has 20 MB
    finally:
        tracemalloc.stop()


def test_what_the_tracer_sends_today_is_read(tmp_path: Path) -> None:
    """A run of a real agent, traced by a client whose server is in memory."""
    agents = pytest.importorskip("langchain.agents")
    langsmith = pytest.importorskip("langsmith")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tracers.langchain import LangChainTracer

    sent: dict[str, Node] = {}

    class Session(langsmith.client.requests.Session):  # type: ignore[misc, name-defined]
        def request(self, method: str, url: str, *args: object, **options: Any) -> Any:
            answer = langsmith.client.requests.Response()
            answer.status_code, answer._content = 200, b"{}"
            if method in ("POST", "PATCH"):
                body = json.loads(options["data"])
                known = sent.setdefault(body.get("id") or url.rsplit("/", 1)[1], {})
                known.update({key: value for key, value in body.items() if value is not None})
            return answer

    client = langsmith.Client(api_url="http://127.0.0.1:9", api_key="x", auto_batch_tracing=False, session=Session())
    agent = agents.create_agent(GenericFakeChatModel(messages=iter([AIMessage("Done.")])), tools=[], name="fixer")
    tracer = LangChainTracer(client=client, project_name="p")
    agent.invoke({"messages": [("user", "Fix it.")]}, config={"callbacks": [tracer]})
    tracer.wait_for_futures()
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(value) for value in sent.values()), encoding="utf-8")
    (run,) = runs(path)
    assert (run.steps, run.source, run.task) == ((Step(thought="Done."),), "fixer", "Fix it.")


def test_a_tool_without_an_id_answers_the_call_of_its_name_not_one_without_an_id(write: Write) -> None:
    calls = [{"id": "", "name": "look", "args": {}}, {"id": "c", "name": "move", "args": {}}]
    answer = {"role": "assistant", "content": "x", "tool_calls": calls}
    held = [
        {"id": "1", "run_type": "llm", "trace_id": "t", "start_time": "0", "outputs": answer},
        {"id": "2", "run_type": "tool", "name": "move", "trace_id": "t", "start_time": "1", "outputs": {"output": "y"}},
    ]
    (run,) = runs(write("a.json", held))
    assert [result.call_id for result in run.steps[0].tool_results] == ["c"]
