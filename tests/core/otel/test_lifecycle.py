"""Runs that do not go from a start to one finish: left open, resumed, repeated, late, nested, or of odd values."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import OpenTelemetrySink, __version__
from reasonblocks.events import Event, RunFinish, RunStart, StepEvent
from reasonblocks.exceptions import ExtraMissing
from reasonblocks.types import RunInfo, StepOutcome, ToolCall, ToolResult
from reasonblocks_testing import LoopHarness
from tests.core.otel.recorded import SCRIPT
from tests.core.otel.world import (
    Memory,
    NoOpLoggerProvider,
    NoOpTracerProvider,
    emitted,
    finished,
    id_of,
    started,
    step,
)
from tests.core.world import begin, called, client, printed, run, through_json
from tests.core.world import step as completed

UNFINISHED, CONTINUED = "reasonblocks.run.unfinished", "reasonblocks.run.continued"

# ------------------------------------------------------------ left open


def test_a_run_that_never_finishes_ends_when_the_sink_is_closed() -> None:
    run = emitted(started(), step(0), step(1, metadata={"latency_ms": 500.0})).run
    assert (run.times, run.attributes[UNFINISHED]) == ((100.0, 102.5), True)
    assert [one.times for one in run.below] == [(101.0, 102.0), (102.0, 102.5)]
    assert "reasonblocks.run.outcome" not in run.attributes


def test_closing_shuts_nobodys_provider_down() -> None:
    memory = Memory()
    sink = memory.sink()
    sink.close()
    sink.emit(started())
    sink.emit(finished())
    with memory.tracers.get_tracer("theirs").start_as_current_span("theirs"):
        pass
    assert [span.name for span in memory.spans] == ["invoke_agent", "theirs"]


def test_without_an_sdk_nothing_is_emitted_and_nothing_raises() -> None:
    sink = OpenTelemetrySink(tracer_provider=NoOpTracerProvider(), logger_provider=NoOpLoggerProvider(), calls=True)
    rb = client(sinks=[sink])
    LoopHarness().run(rb, SCRIPT, "sync")
    rb.close()
    assert not sink._open


def test_the_scope_of_spans_and_events_is_this_library() -> None:
    memory = emitted(started(), step(0), step(1, scores={"a": 0.5}), finished())
    scopes = [span.instrumentation_scope for span in memory.spans] + [
        one.instrumentation_scope for one in memory.records
    ]
    assert {(scope.name, scope.version) for scope in scopes if scope} == {("reasonblocks", __version__)}


def test_beyond_1024_open_runs_the_one_without_news_for_the_longest_time_ends() -> None:
    memory = emitted(
        *[started(str(number)) for number in range(1_024)], step(0, run_id="0"), started("one more"), close=False
    )
    assert [root.attributes["reasonblocks.run.id"] for root in memory.roots] == ["1"]
    assert memory.run.attributes[UNFINISHED] is True


def test_what_is_kept_of_ended_runs_is_bounded() -> None:
    memory = Memory()
    sink = memory.sink()
    for number in range(1_100):
        sink.emit(started(str(number), task="long " * 1_000))
        sink.emit(finished(run_id=str(number)))
    kept = sink._ended
    assert (len(kept), len(sink._open), {one.run.task for one in kept.values() if one.run}) == (1_024, 0, {""})


# ------------------------------------------------------------ late, repeated, out of order


def test_a_failure_after_a_success_is_a_span_of_its_own_in_the_run() -> None:
    run = emitted(started(), finished(), finished(at=120.0, outcome="failure: wrong answer")).run
    assert run.names == ("invoke_agent", ["reasonblocks.outcome"])
    (late,) = run.below
    assert (run.status, late.status, late.times) == ("UNSET", "ERROR", (120.0, 120.0))
    assert late.attributes["reasonblocks.run.outcome"] == "failure: wrong answer"


def test_a_session_that_marks_a_failure_later_has_that_span() -> None:
    memory = Memory()
    session = client(sinks=[memory.sink()]).session()
    run(session, 1)
    session.finish()
    session.mark_failure("the tests fail")
    session.close()
    assert [one.attributes["reasonblocks.run.outcome"] for one in memory.run.named("reasonblocks.outcome")] == [
        "failure: the tests fail"
    ]


@pytest.mark.parametrize("again", ["success", "failure: X"])
def test_a_repeated_step_or_finish_changes_nothing(again: str) -> None:
    first = "failure: X" if again == "success" else again
    run = emitted(started(), step(0), step(1), step(1), finished(outcome=first), finished(outcome=again)).run
    assert run.names == ("invoke_agent", ["reasonblocks.step"] * 2)


def test_a_run_that_starts_again_under_its_id_is_another_run() -> None:
    memory = emitted(started(), step(0), started(at=200.0), step(0, at=201.0), finished(at=202.0))
    assert [(root.times, root.attributes.get(UNFINISHED)) for root in memory.roots] == [
        ((100.0, 101.0), True), ((200.0, 202.0), None),
    ]  # fmt: skip
    ended = emitted(started(), finished(), started(at=200.0), finished(at=201.0))
    assert [root.times for root in ended.roots] == [(100.0, 110.0), (200.0, 201.0)]


def test_a_run_that_continues_after_its_end_has_another_span_in_its_trace() -> None:
    memory = emitted(started(agent_name="coder"), step(0), finished(), step(1, at=120.0), finished(at=130.0))
    first = memory.run
    (second,) = first.named("invoke_agent coder")[1:]
    assert (second.times, second.attributes[CONTINUED], second.names[1]) == (
        (120.0, 130.0), True, ["reasonblocks.step"],
    )  # fmt: skip
    assert [link.context.span_id for link in second.span.links] == [id_of(first.span)]


@pytest.mark.parametrize("events", [[step(0), finished()], [finished()], [step(0)]], ids=["both", "finish", "step"])
def test_a_run_whose_start_was_missed_has_a_span(events: list[Event]) -> None:
    run = emitted(*events).run
    assert (run.name, run.attributes["reasonblocks.run.id"], run.attributes[CONTINUED]) == ("invoke_agent", "run", True)


def test_clocks_that_go_back_make_no_span_end_before_it_starts() -> None:
    memory = emitted(started(at=100), step(0, at=90.0), step(1, at=80.0), finished(at=70.0), calls=True)
    for one in memory.run.all():
        assert one.times[0] <= one.times[1]


def indexes(memory: Memory) -> list[tuple[int, list[str]]]:
    """The number of each step, and the names below it."""
    return [(one.attributes["reasonblocks.step.index"], [two.name for two in one.below]) for one in memory.run.below]


def test_what_a_lost_step_did_is_not_given_to_the_one_before_it() -> None:
    memory = emitted(
        started(), step(0), step(2, action="bash", observation="ok", scores={"a": 0.5}), finished(), calls=True
    )
    assert indexes(memory) == [(0, ["chat"]), (1, ["chat", "execute_tool bash"]), (2, ["chat"])]
    assert judged(memory) == [1]


def test_a_run_that_goes_back_to_an_earlier_state_repeats_its_steps() -> None:
    events = [
        step(0),
        step(1, action="bash"),
        step(2, action="bash"),
        step(1, at=110.0, action="python", observation="ok"),
    ]
    memory = emitted(started(), *events, finished(at=120.0), calls=True)
    assert [index for index, _ in indexes(memory)] == [0, 1, 2, 0, 1]
    assert indexes(memory)[3] == (0, ["chat", "execute_tool python"])


def judged(memory: Memory) -> list[Any]:
    """The number of the judged step of each evaluation."""
    return [(record.log_record.attributes or {})["reasonblocks.step.index"] for record in memory.records]


def test_after_a_failed_call_the_step_before_it_is_judged_again_and_not_repeated() -> None:
    memory = Memory()
    session = client(sinks=[memory.sink(calls=True)]).session()
    run(session, 1)
    for outcome in (StepOutcome(error="TimeoutError"), StepOutcome(error="TimeoutError"), called(1)):
        session.end_step(begin(session, 1), outcome)
    session.finish(completed=completed(1))
    session.close()
    chat, tool = "chat agent-model", "execute_tool read_file"
    assert indexes(memory) == [(0, [chat, tool]), (1, ["chat"]), (2, ["chat"]), (3, [chat, tool]), (4, [])]
    assert judged(memory) == [0, 0, 0, 3]
    assert {record.log_record.span_id for record in memory.records[:3]} == {id_of(memory.run.below[0].span)}


def test_a_call_that_fails_right_after_a_resumption_does_not_get_the_answer_before_it() -> None:
    failed, after = step(3, metadata={"error": "TimeoutError"}), step(4, action="bash", observation="ok")
    memory = emitted(failed, after, finished(), calls=True)
    assert indexes(memory) == [(3, ["chat"]), (2, ["chat", "execute_tool bash"]), (4, ["chat"])]


# ------------------------------------------------------------ pauses


def test_a_run_that_pauses_and_is_resumed_here_is_one_span() -> None:
    memory = Memory()
    rb = client(sinks=[memory.sink()])
    LoopHarness().run(rb, SCRIPT, "sync", resume_at=[2])
    rb.close()
    assert memory.run.names == ("invoke_agent fixer", ["reasonblocks.step"] * 5)


def test_a_run_that_is_resumed_elsewhere_loses_no_step() -> None:
    here, there = Memory(), Memory()
    rb = client(sinks=[here.sink(calls=True)])
    session = rb.session(run_id="run")
    run(session, 2)
    session.pause()
    rb.close()
    other = client(sinks=[there.sink(calls=True)])
    resumed = other.session(snapshot=through_json(session.trace.snapshot()))
    resumed.end_step(begin(resumed, 2), called(2))
    resumed.finish()
    other.close()
    assert here.run.attributes[UNFINISHED] is True
    assert there.run.attributes[CONTINUED] is True
    assert [one.attributes["reasonblocks.step.index"] for one in there.run.below] == [1, 2, 3]
    assert there.run.below[0].names == ("reasonblocks.step", ["chat", "execute_tool read_file"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_leaves_the_open_spans_to_its_parent() -> None:
    program = """
        import os
        from tests.core.otel.world import Memory, finished, id_of, started, step

        memory = Memory()
        sink = memory.sink()
        sink.emit(started())
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            sink.emit(step(0))
        sink.emit(finished())
        sink.close()
        for one in memory.spans:
            print("parent" if child else "child", one.name, one.parent is not None, len(one.links), flush=True)
    """
    assert printed(program).splitlines() == [
        "child reasonblocks.step True 0",
        "child invoke_agent True 1",
        "parent invoke_agent False 0",
    ]


# ------------------------------------------------------------ odd values

ODD: Any = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("\ud800"), st.just(10**5000),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip
KEYS = (
    "fsm_state", "difficulty", "gate_decision", "latency_ms", "route", "error", "doubts", "withheld_sources",
    "withheld_texts", "pattern_ids", "note_ids", "placement", "skipped_reason", "final", "stop", "mode",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_value_of_an_event_raises_or_loses_a_span(data: st.DataObject) -> None:
    def odd(name: str) -> Any:
        return data.draw(ODD, name)

    metadata = data.draw(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=4))
    metadata.pop("skipped_reason", None) if metadata.get("skipped_reason") == "auxiliary" else None
    info = RunInfo(run_id="run", agent_name=odd("agent"), session_id=odd("session"), traceparent=odd("parent"))
    call = ToolCall(id=odd("id"), name=odd("name"), arguments=odd("arguments"))
    result = ToolResult(call_id=odd("call id"), output="\ud800 done", duration_ms=odd("duration"))
    events: list[Event] = [
        RunStart(run=info, timestamp=data.draw(st.floats())),
        StepEvent(run_id="run", step_index=0, timestamp=data.draw(st.floats()), metadata=metadata, step_model=odd("m")),
        StepEvent(
            run_id="run", step_index=1, timestamp=data.draw(st.floats()), tool_calls=(call,), tool_results=(result,),
            scores={"monitor": odd("score")}, composite=odd("composite"), input_tokens=odd("tokens"),
        ),
        RunFinish(run_id="run", outcome="success", timestamp=data.draw(st.floats())),
    ]  # fmt: skip
    memory = emitted(*events, calls=True)
    steps = [one.attributes["reasonblocks.step.index"] for one in memory.run.below]
    assert ({*steps}, len(memory.records)) == ({0, 1}, 1)
    for span in memory.spans:
        assert (span.start_time or 0) <= (span.end_time or 0)
        for value in (span.attributes or {}).values():
            assert not isinstance(value, float) or math.isfinite(value)
            span.to_json().encode()


def test_without_opentelemetry_the_error_has_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ExtraMissing, match=r"^OpenTelemetrySink needs opentelemetry-api: pip install 'opentelemetry-"):
        Memory().sink()
