"""The place of a run's span in the traces of the program: below the span that was current, or below another run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks_testing import LoopHarness, Script, Turn, tool_call, tool_result
from tests.core.otel.recorded import SCRIPT
from tests.core.otel.world import Memory, emitted, finished, id_of, started, step
from tests.core.world import client, printed, run

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
NO_CHANCE = f"00-{TRACE}-{SPAN}-00"
OUTER = Script(
    turns=(
        Turn(text="I ask a colleague.", tool_calls=(tool_call("c0", "delegate"),), results=(tool_result("c0", "ok"),)),
        Turn(text="Done."),
    ),
    run_id="outer",
    agent_name="lead",
)


def test_a_run_belongs_to_the_span_of_its_traceparent() -> None:
    span = emitted(started(traceparent=PARENT), finished()).run.span
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}", span.parent.is_remote) == (TRACE, SPAN, True)
    assert span.context is not None
    assert span.context.trace_id == span.parent.trace_id


def test_a_run_of_a_trace_that_is_not_sampled_is_not_emitted() -> None:
    assert emitted(started(traceparent=NO_CHANCE), step(0), step(1), finished(), calls=True).spans == ()


@pytest.mark.parametrize("bad", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", PARENT.upper(), 5])
def test_a_traceparent_that_is_none_makes_a_trace_of_its_own(bad: Any) -> None:
    assert emitted(started(traceparent=bad), finished()).run.span.parent is None


def test_the_option_traceparent_reaches_the_span() -> None:
    memory = Memory()
    session = client(sinks=[memory.sink()]).session(traceparent=PARENT)
    run(session, 1)
    session.close()
    assert memory.run.span.parent is not None
    assert f"{memory.run.span.parent.span_id:016x}" == SPAN


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_run_belongs_to_the_span_that_is_current_when_it_starts(mode: str) -> None:
    memory = Memory()
    rb = ReasonBlocks(sinks=[memory.sink()])
    with memory.tracers.get_tracer("theirs").start_as_current_span("request"):
        LoopHarness().run(rb, SCRIPT, mode)
    rb.close()
    assert memory.run.names == ("request", [("invoke_agent fixer", ["reasonblocks.step"] * 5)])


def test_the_span_that_is_current_in_the_sinks_thread_is_no_parent() -> None:
    memory = Memory()
    sink = memory.sink()
    with memory.tracers.get_tracer("theirs").start_as_current_span("theirs"):
        for event in (started(), step(0), finished()):
            sink.emit(event)
    assert {root.name: root.span.parent for root in memory.roots} == {"invoke_agent": None, "theirs": None}


# ------------------------------------------------------------ runs within runs


def nested() -> Memory:
    memory = Memory()
    rb = ReasonBlocks(sinks=[memory.sink()])
    LoopHarness().run_nested(rb, OUTER, SCRIPT, "sync")
    rb.close()
    return memory


def below(memory: Memory) -> Iterator[tuple[str, str]]:
    for one in memory.run.all():
        for other in one.below:
            if other.name.startswith("invoke_agent"):
                yield one.name, other.name


def test_a_run_that_a_tool_starts_belongs_to_the_run_of_the_tool() -> None:
    memory = nested()
    assert list(below(memory)) == [("invoke_agent lead", "invoke_agent fixer")]
    (inner,) = memory.run.named("invoke_agent fixer")
    assert (inner.attributes["reasonblocks.run.parent_id"], inner.attributes["reasonblocks.run.parent_call_id"]) == (
        "outer", "c0",
    )  # fmt: skip


def test_both_runs_within_one_request_keep_that_order() -> None:
    memory = Memory()
    rb = ReasonBlocks(sinks=[memory.sink()])
    with memory.tracers.get_tracer("theirs").start_as_current_span("request"):
        LoopHarness().run_nested(rb, OUTER, SCRIPT, "sync")
    rb.close()
    assert list(below(memory)) == [
        ("request", "invoke_agent lead"), ("invoke_agent lead", "invoke_agent fixer"),
    ]  # fmt: skip


def test_a_span_around_the_inner_run_is_its_parent_and_the_outer_run_a_link() -> None:
    memory = emitted(
        started("outer"), started("inner", parent_run_id="outer", traceparent=PARENT), finished(run_id="inner"),
        finished(run_id="outer"),
    )  # fmt: skip
    inner, outer = memory.roots
    if inner.attributes["reasonblocks.run.id"] == "outer":
        inner, outer = outer, inner
    assert inner.span.parent is not None
    assert f"{inner.span.parent.span_id:016x}" == SPAN
    assert [link.context.span_id for link in inner.span.links] == [id_of(outer.span)]


def test_an_inner_run_may_start_after_the_outer_run_has_ended() -> None:
    memory = emitted(
        started("outer"), finished(run_id="outer"), started("inner", parent_run_id="outer"), finished(run_id="inner")
    )
    assert memory.run.names == ("invoke_agent", ["invoke_agent"])


def test_an_outer_run_that_is_not_known_is_an_attribute_only() -> None:
    run = emitted(started(parent_run_id="elsewhere"), finished()).run
    assert (run.span.parent, run.attributes["reasonblocks.run.parent_id"]) == (None, "elsewhere")


def test_without_providers_the_sink_uses_those_that_the_program_sets_later() -> None:
    program = """
from opentelemetry import trace
from reasonblocks import OpenTelemetrySink
sink = OpenTelemetrySink()
from tests.core.otel.world import Memory, finished, started, step
from opentelemetry._logs import set_logger_provider
memory = Memory()
trace.set_tracer_provider(memory.tracers)
set_logger_provider(memory.loggers)
for event in (started(), step(0), step(1, scores={"a": 0.5}), finished()):
    sink.emit(event)
print(len(memory.spans), len(memory.records))
"""
    assert printed(program) == "3 1\n"
