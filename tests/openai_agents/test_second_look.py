"""A run whose end is in doubt gets one more call, and is one run of the SDK in all that it leaves."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from agents import (
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelSettings,
    OutputGuardrail,
    OutputGuardrailTripwireTriggered,
    RunHooks,
    Runner,
    SQLiteSession,
)
from openai import BadRequestError
from pydantic import BaseModel

from reasonblocks.requests import Evaluate
from reasonblocks.types import Doubt, Evaluation
from reasonblocks_openai_agents import SteeredRun, openai_model, openai_run_streamed, steering_of
from reasonblocks_testing import ScriptedEvaluator, ScriptedReasonBlocks, Turn
from reasonblocks_testing.server import Asked
from tests.openai_agents.other_process import alone, approved
from tests.openai_agents.world import (
    TASK,
    Place,
    as_tool,
    asking,
    call,
    every_way,
    family,
    fixer,
    look,
    looks,
    named,
    one_by_one,
    place,
    said,
    streamed,
    whole_and_streamed,
)
from tests.steered import steering

DOUBT = "The work was declared done, and nothing was run since. Run the tests."
DOUBTFUL = Evaluation(doubts=(Doubt(monitor="verification_skip", text=DOUBT),))
TWICE = (*looks(1), call("look", "d", "I look again.", path="f0"), said("Really all seen."))
"""A run that ends after call 1, and calls 2 and 3 of its second look."""
ENDS = ["user", "message", "function_call", "function_call_output", "message"]


def doubting(after: int = 1, **options: Any) -> ScriptedReasonBlocks:
    """A client that doubts all ends from completed step `after` on, and says nothing else."""
    steps = [Evaluation()] * after + [DOUBTFUL] * 20
    return steering(evaluator=ScriptedEvaluator(steps), second_look="unchecked", e_traces_enabled=False, **options)


def kinds(items: Sequence[Any]) -> list[str]:
    """The kind of each item, however the SDK writes messages."""
    roles = {"assistant": "message"}
    return [str(item.get("type") or roles.get(item["role"], item["role"])) for item in items]


@every_way
def test_its_result_is_that_of_one_run(way: str) -> None:
    agent = fixer(model_settings=ModelSettings(include_usage=True))
    with place(one_by_one(*TWICE), way) as here:
        result = here.run(doubting(), agent, max_turns=7, context={"mine": True})
        assert here.guided == [False, False, True, False]
    assert kinds(result.to_input_list()) == [*ENDS, *ENDS[1:]]
    assert "REASONBLOCKS" not in repr(result.to_input_list())
    assert (len(result.raw_responses), result.context_wrapper.usage.requests) == (4, 4)
    assert [item.type for item in result.new_items].count("message_output_item") == 4
    assert (result.last_agent, result.input, result.max_turns) == (agent, TASK, 7)
    assert result.context_wrapper.context == {"mine": True}
    assert result.to_state()._current_turn == 4


@whole_and_streamed
def test_an_observed_run_has_none_and_its_log_says_what_it_would_have_read(way: str) -> None:
    with place(one_by_one(*TWICE), way) as here:
        run = steering_of(here.run(doubting(), fixer(), mode="observe"))
        assert len(here.requests) == 2
    assert run.final is not None
    (text,) = run.final.withheld_texts
    assert DOUBT in text
    assert run.outcome == "success"


@whole_and_streamed
@pytest.mark.parametrize("placement", ["tail", "system"])
def test_its_text_is_the_last_message_in_every_placement(placement: Any, way: str) -> None:
    with place(one_by_one(said(), said("Yes.")), way) as here:
        here.run(doubting(after=0), fixer(), placement=placement)
        assert [asked.roles for asked in here.requests] == [("user",), ("user", "assistant", "user")]


# ------------------------------------------------------------ the stream


@streamed
def test_the_one_stream_goes_on_with_the_events_of_the_second_part(way: str) -> None:
    async def work(here: Place) -> list[str]:
        heard: list[str] = []
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        async for event in result.stream_events():
            heard.append(getattr(event, "name", event.type))
        assert result.is_complete
        assert (result.final_output, result.current_turn) == ("Really all seen.", 4)
        assert result.run_loop_task is not None
        assert result.run_loop_task.done()
        assert [event async for event in result.stream_events()] == []
        assert steering_of(result).outcome == "success"
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return heard

    async def plain(here: Place) -> list[str]:
        result = Runner.run_streamed(fixer(), TASK, run_config=here.config())
        return [getattr(event, "name", event.type) async for event in result.stream_events()]

    with place(one_by_one(*TWICE[:2], *TWICE), way) as here:
        began, *part = here.until(plain(here))
        assert here.until(work(here)) == [began, *part, *part]


@streamed
def test_the_events_of_the_second_part_come_as_they_arise(way: str) -> None:
    heard = threading.Event()
    turns = one_by_one(*TWICE)

    def answer(asked: Asked) -> Turn:
        """The last call is answered once the caller has heard of the second part."""
        assert asked.answers < 3 or heard.wait(60)
        return turns(asked)

    async def work(here: Place) -> Any:
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        outputs = 0
        async for event in result.stream_events():
            outputs += getattr(event, "name", "") == "tool_output"
            if outputs == 2:
                heard.set()
        return result.final_output

    with place(answer, way) as here:
        assert here.until(work(here)) == "Really all seen."


@streamed
def test_a_stream_that_nobody_reads_has_its_second_look(way: str) -> None:
    async def work(here: Place) -> Any:
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        assert result.run_loop_task is not None
        await asyncio.wait([result.run_loop_task])
        return result

    with place(one_by_one(*TWICE), way) as here:
        result = here.until(work(here))
        assert (steering_of(result).outcome, result.final_output) == ("success", "Really all seen.")


@streamed
def test_a_stream_that_is_read_late_has_the_events_of_both_parts(way: str) -> None:
    async def work(here: Place) -> list[str]:
        result = openai_run_streamed(doubting(after=0), fixer(), TASK, run_config=here.config())
        assert result.run_loop_task is not None
        await asyncio.wait([result.run_loop_task])
        return [event.type async for event in result.stream_events() if event.type != "raw_response_event"]

    with place(one_by_one(said(), said("Yes.")), way) as here:
        assert here.until(work(here)) == ["agent_updated_stream_event", *["run_item_stream_event"] * 2]


@streamed
def test_a_caller_that_polls_the_result_sees_one_end(way: str) -> None:
    async def work(here: Place) -> list[tuple[bool, Any]]:
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        seen = [(result.is_complete, result.final_output)]
        assert result.run_loop_task is not None
        while not result.run_loop_task.done():
            await asyncio.sleep(0)
            now = (result.is_complete, result.final_output)
            seen += [now] * (now != seen[-1])
        return seen

    with place(one_by_one(*TWICE), way) as here:
        seen = here.until(work(here))
        assert (seen[0], seen[-1]) == ((False, None), (True, "Really all seen."))
        assert {complete for complete, output in seen if output is None} == {False}
        assert {output for _, output in seen} == {None, "Really all seen."}
        assert len(here.requests) == 4


@streamed
def test_a_stream_that_is_cancelled_is_complete_at_once(way: str) -> None:
    async def work(here: Place) -> None:
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        assert not result.is_complete
        result.cancel()
        assert result.is_complete

    with place(one_by_one(*TWICE), way) as here:
        here.until(work(here))


@streamed
def test_a_run_that_is_cancelled_while_its_end_is_judged_has_no_second_look(way: str) -> None:
    class Late(ScriptedEvaluator):
        """Cancels the run when it judges the answer."""

        def evaluate(self, request: Evaluate) -> Any:
            found, memories = super().evaluate(request)
            if found.doubts:
                cancel[0]("after_turn")
            return found, memories

    cancel: list[Any] = []

    async def work(here: Place) -> Any:
        rb = steering(evaluator=Late([Evaluation(), *[DOUBTFUL] * 20]), second_look="unchecked", e_traces_enabled=False)
        result = openai_run_streamed(rb, fixer(), TASK, run_config=here.config())
        cancel.append(result.cancel)
        async for _ in result.stream_events():
            pass
        return result

    with place(one_by_one(*TWICE), way) as here:
        result = here.until(work(here))
        assert len(here.requests) == 2
    assert (result.is_complete, result.final_output) == (True, "All seen.")
    assert steering_of(result).outcome == "success"


@streamed
def test_a_run_that_shall_end_after_its_turn_has_no_second_look(way: str) -> None:
    async def work(here: Place) -> Any:
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        async for event in result.stream_events():
            if getattr(event, "name", "") == "message_output_created" and len(here.requests) == 2:
                result.cancel("after_turn")
        return result

    with place(one_by_one(*TWICE), way) as here:
        assert here.until(work(here)).final_output == "All seen."
        assert len(here.requests) == 2


@streamed
def test_a_run_can_be_cancelled_in_its_second_look(way: str) -> None:
    async def work(here: Place) -> SteeredRun:
        result = openai_run_streamed(doubting(), fixer(), TASK, run_config=here.config())
        async for event in result.stream_events():
            if getattr(event, "name", "") == "tool_called" and len(here.requests) == 3:
                result.cancel()
        assert result.is_complete
        assert result.run_loop_task is not None
        await asyncio.wait([result.run_loop_task])
        return steering_of(result)

    with place(one_by_one(*TWICE), way) as here:
        run = here.until(work(here))
        assert len(here.requests) == 3
    assert run.outcome is None


# ------------------------------------------------------------ what an agent can do


@every_way
def test_a_session_has_each_item_once(way: str) -> None:
    session = SQLiteSession("session")
    with place(one_by_one(*TWICE, said("The docs, too.")), way) as here:
        here.run(doubting(), fixer(), session=session)
        assert kinds(here.until(session.get_items())) == [*ENDS, *ENDS[1:]]
        here.run(steering(), fixer(), "And the docs?", session=session)
        assert kinds(here.until(session.get_items())) == [*ENDS, *ENDS[1:], "user", "message"]
    session.close()


@every_way
def test_it_goes_on_with_the_agent_that_answered(way: str) -> None:
    second = fixer(name="second", instructions="You go on.", model="other")
    turns = (call("transfer_to_second", "h"), said(), call("look", "d", path="f0"), said("Really all seen."))
    with place(one_by_one(*turns), way) as here:
        result = here.run(doubting(), fixer(handoffs=[second]))
        assert [asked.model for asked in here.requests] == ["own", "other", "other", "other"]
    assert (result.last_agent, result.final_output) == (second, "Really all seen.")
    assert [entry.model_id for entry in steering_of(result).step_log] == ["own", "other", "other", "other"]


class Verdict(BaseModel):
    fixed: bool


@every_way
def test_a_structured_answer_is_looked_at(way: str) -> None:
    turns = (said('{"fixed": true}'), said('{"fixed": false}'))
    with place(one_by_one(*turns), way) as here:
        result = here.run(doubting(after=0), fixer(output_type=Verdict))
    assert result.final_output == Verdict(fixed=False)


@every_way
def test_a_run_that_waited_for_an_approval_has_its_second_look_at_its_end(way: str) -> None:
    with place(one_by_one(*looks(1), said("Really all seen.")), way) as here:
        rb, agent = doubting(), alone()
        first = here.run(rb, agent)
        assert len(here.requests) == 1
        state = here.until(approved(agent, first.to_state().to_json()))
        result = here.run(rb, agent, state, snapshot=steering_of(first).snapshot())
        assert len(here.requests) == 3
    assert (steering_of(result).outcome, result.final_output) == ("success", "Really all seen.")


@every_way
def test_its_tools_can_wait_for_an_approval(way: str) -> None:
    with place(one_by_one(said(), *looks(1), said("Never asked for.")), way) as here:
        rb, agent = doubting(after=0), alone()
        first = here.run(rb, agent)
        assert (steering_of(first).outcome, len(first.interruptions), len(here.requests)) == (None, 1, 2)
        state = here.until(approved(agent, first.to_state().to_json()))
        result = here.run(rb, agent, state, snapshot=steering_of(first).snapshot())
    run = steering_of(result)
    assert (run.run_id, run.outcome, len(here.requests)) == (steering_of(first).run_id, "success", 3)
    assert kinds(result.to_input_list()) == ["user", "message", *ENDS[1:]]


@every_way
def test_the_callers_hooks_hear_both_ends(way: str) -> None:
    class Hearing(RunHooks[Any]):
        async def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
            heard.append("call")

        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            heard.append(output)

    heard: list[str] = []
    with place(one_by_one(*looks(1), said("Yes.")), way) as here:
        here.run(doubting(), fixer(), hooks=Hearing())
    assert heard == ["call", "call", "All seen.", "call", "Yes."]


# ------------------------------------------------------------ ends without one


@every_way
def test_a_run_without_a_turn_left_keeps_its_answer(way: str) -> None:
    with place(one_by_one(*TWICE), way) as here:
        result = here.run(doubting(), fixer(), max_turns=2)
        assert len(here.requests) == 2
    assert (steering_of(result).outcome, result.final_output) == ("success", "All seen.")


@every_way
def test_turns_that_run_out_in_it_are_a_failure(way: str) -> None:
    with place(one_by_one(*TWICE), way) as here, pytest.raises(MaxTurnsExceeded) as caught:
        here.run(doubting(), fixer(), max_turns=3)
    assert steering_of(caught.value).outcome == "failure: MaxTurnsExceeded"


@every_way
def test_what_its_model_raises_is_the_callers(way: str) -> None:
    turns = (*looks(1), Turn(error=LookupError("no such thing")))
    with place(one_by_one(*turns), way) as here, pytest.raises(BadRequestError) as caught:
        here.run(doubting(), fixer())
    run = steering_of(caught.value)
    assert run.outcome == "failure: BadRequestError"
    assert "no such thing" in (run.step_log[2].error or "")


@every_way
def test_a_run_that_ends_by_a_tool_has_no_message_to_look_at(way: str) -> None:
    with place(one_by_one(*looks(1)), way) as here:
        result = here.run(doubting(after=0), fixer(tool_use_behavior="stop_on_first_tool"))
        assert len(here.requests) == 1
    assert (steering_of(result).outcome, result.final_output) == ("success", "f0 is empty")


def trips(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@every_way
def test_a_run_that_a_guardrail_ends_has_none(way: str) -> None:
    guarded = fixer(output_guardrails=[OutputGuardrail(trips)])
    with place(one_by_one(*TWICE), way) as here, pytest.raises(OutputGuardrailTripwireTriggered) as caught:
        here.run(doubting(), guarded)
    assert len(here.requests) == 2
    assert steering_of(caught.value).outcome == "failure: OutputGuardrailTripwireTriggered"


@every_way
def test_a_run_that_a_guardrail_beside_it_ends_has_none(way: str) -> None:
    async def late(*_: Any) -> GuardrailFunctionOutput:
        await asked.wait()
        return trips()

    def answer(request: Asked) -> Turn:
        here.loop.call_soon_threadsafe(asked.set)
        return said()

    asked = asyncio.Event()
    with place(answer, way) as here, pytest.raises(InputGuardrailTripwireTriggered) as caught:
        here.run(doubting(after=0), fixer(input_guardrails=[InputGuardrail(late)]))
    assert len(here.requests) == 1
    assert steering_of(caught.value).outcome == "failure: InputGuardrailTripwireTriggered"


# ------------------------------------------------------------ where there is none, which is said


@whole_and_streamed
@pytest.mark.parametrize("chain", [{"conversation_id": "conv"}, {"auto_previous_response_id": True}])
def test_a_servers_conversation_has_none(chain: dict[str, Any], way: str, caplog: pytest.LogCaptureFixture) -> None:
    with place(one_by_one(*TWICE), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        result = here.run(doubting(placement="system"), fixer(), **chain)
        assert len(here.requests) == 2
    assert steering_of(result).outcome == "success"
    assert caplog.text.count("second_look") == 1


@whole_and_streamed
def test_a_model_object_alone_has_none(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with place(one_by_one(*TWICE), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        model = openai_model(doubting(), here.model("own"))
        here.plain(fixer(model=model))
        assert len(here.requests) == 2
    assert [run.outcome for run in model.runs.values()] == ["success"]
    assert caplog.text.count("second_look") == 1


@whole_and_streamed
def test_a_model_object_in_a_steered_run_has_one(way: str) -> None:
    with place(one_by_one(*TWICE), way) as here:
        rb = doubting()
        result = here.run(rb, fixer(model=openai_model(rb, here.model("own"))))
        assert here.guided == [False, False, True, False]
    assert result.final_output == "Really all seen."


@whole_and_streamed
def test_an_agent_of_a_tool_has_none_and_the_run_that_asked_it_has(way: str, caplog: pytest.LogCaptureFixture) -> None:
    def answer(asked: Asked) -> Turn:
        return said("Done.") if asked.model == "inner" else outer(asked)

    outer = one_by_one(asking("inner", "a"), said(), said("Yes."))
    with place(answer, way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        result = here.run(doubting(after=0), named("outer", as_tool(named("inner", look))))
        assert [asked.model for asked in here.requests] == ["outer", "inner", "outer", "outer"]
    assert family(steering_of(result)) == ("outer", "success", [("inner", "success", [])])
    assert result.final_output == "Yes."
    assert "second_look" not in caplog.text
