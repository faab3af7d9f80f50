"""A guardrail ends a run as the SDK has it end, and the run says so."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from agents import (
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    OutputGuardrail,
    OutputGuardrailTripwireTriggered,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailTripwireTriggered,
    function_tool,
    tool_input_guardrail,
    tool_output_guardrail,
)

from reasonblocks_openai_agents import openai_run, steering_of
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked
from tests.openai_agents.world import (
    TASK,
    Judged,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    place,
    said,
    whole_and_streamed,
)
from tests.steered import steering


def verdict(trips: bool) -> Any:
    async def judge(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=trips)

    return judge


@every_way
@pytest.mark.parametrize("parallel", [True, False])
def test_guardrails_that_do_not_trip_change_nothing(parallel: bool, way: str) -> None:
    agent = fixer(
        input_guardrails=[InputGuardrail(verdict(False), run_in_parallel=parallel)],
        output_guardrails=[OutputGuardrail(verdict(False))],
    )
    with place(in_turn(*looks(2)), way) as here:
        run = steering_of(here.run(steering(), agent))
        assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2])
        assert here.guided == [True, True, False]


@every_way
def test_an_input_guardrail_before_the_run_leaves_a_failed_run_without_calls(way: str) -> None:
    rb = steering()
    agent = fixer(input_guardrails=[InputGuardrail(verdict(True), run_in_parallel=False)])
    with place(in_turn(said()), way) as here:
        with pytest.raises(InputGuardrailTripwireTriggered) as caught:
            here.run(rb, agent)
        run = steering_of(caught.value)
        assert here.requests == []
    assert (run.outcome, run.step_log) == ("failure: InputGuardrailTripwireTriggered", [])


@every_way
def test_an_input_guardrail_beside_the_run_ends_it_as_failed(way: str) -> None:
    asked, let_go = threading.Event(), threading.Event()

    async def trips_while_the_model_thinks(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await asyncio.to_thread(asked.wait, 60)
        if way.startswith("run_streamed"):  # which hears the model out
            let_go.set()
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    def answer(request: Asked) -> Turn:
        asked.set()
        let_go.wait(60)
        return said()

    with place(answer, way) as here:
        try:
            with pytest.raises(InputGuardrailTripwireTriggered) as caught:
                here.run(steering(), fixer(input_guardrails=[InputGuardrail(trips_while_the_model_thinks)]))
        finally:
            let_go.set()
    run = steering_of(caught.value)
    assert run.outcome == "failure: InputGuardrailTripwireTriggered"
    assert [entry.step for entry in run.step_log] == [0]


@every_way
def test_a_call_after_a_guardrail_has_raised_does_not_open_the_failed_run_anew(way: str) -> None:
    async def breaks(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        raise LookupError("a fault of the guardrail")

    with place(in_turn(*looks(1)), way) as here, pytest.raises(LookupError) as caught:
        here.run(steering(), fixer(input_guardrails=[InputGuardrail(breaks)]))
    run = steering_of(caught.value)
    assert run.outcome == "failure: LookupError"
    assert asyncio.run(run.decide([{"role": "user", "content": TASK}], agent_name=None, own_model="m")) is None
    assert run.outcome == "failure: LookupError"


@every_way
def test_an_output_guardrail_ends_the_run_as_failed(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here, pytest.raises(OutputGuardrailTripwireTriggered) as caught:
        here.run(steering(), fixer(output_guardrails=[OutputGuardrail(verdict(True))]))
    run = steering_of(caught.value)
    assert run.outcome == "failure: OutputGuardrailTripwireTriggered"
    assert [(entry.step, entry.error) for entry in run.step_log] == [(0, None), (1, None)]
    assert run.final is not None
    assert run.final.thought_preview == "All seen."


@tool_input_guardrail
def refuses_to_look(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("You may not look.")


@tool_output_guardrail
def refuses_to_tell(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("You may not know.")


@tool_input_guardrail
def stops(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.raise_exception()


def peeking(**guardrails: Any) -> FunctionTool:
    def peek(path: str) -> str:
        return "a secret"

    tool: FunctionTool = function_tool(peek, **guardrails)
    return tool


@whole_and_streamed
@pytest.mark.parametrize(
    ("guarded", "text"),
    [
        ({"tool_input_guardrails": [refuses_to_look]}, "You may not look."),
        ({"tool_output_guardrails": [refuses_to_tell]}, "You may not know."),
    ],
)
def test_what_a_tool_guardrail_says_is_the_steps_result(guarded: dict[str, Any], text: str, way: str) -> None:
    judged = Judged()
    with place(in_turn(call("peek", "c0", path="a"), said()), way) as here:
        here.run(steering(scorer=judged), fixer(tools=[peeking(**guarded)]))
    assert judged.results == [[(text, None)], []]


@whole_and_streamed
def test_a_tool_guardrail_can_end_the_run(way: str) -> None:
    with (
        place(in_turn(call("peek", "c0", path="a"), said()), way) as here,
        pytest.raises(ToolInputGuardrailTripwireTriggered) as caught,
    ):
        here.run(steering(), fixer(tools=[peeking(tool_input_guardrails=[stops])]))
    assert steering_of(caught.value).outcome == "failure: ToolInputGuardrailTripwireTriggered"


@whole_and_streamed
def test_a_guardrail_that_runs_an_agent_steered_leaves_the_run_as_it_is(way: str) -> None:
    judge = fixer(name="judge", model="judge", tools=[])

    async def asks(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        result = await openai_run(rb, judge, "Is it safe?", run_config=here.config())
        return GuardrailFunctionOutput(output_info=str(result.final_output), tripwire_triggered=False)

    rb = steering()
    with place(lambda asked: said("Yes.") if asked.model == "judge" else looks(2)[asked.answers], way) as here:
        run = steering_of(here.run(rb, fixer(input_guardrails=[InputGuardrail(asks)])))
        assert (run.outcome, [entry.model_id for entry in run.step_log]) == ("success", ["own"] * 3)
