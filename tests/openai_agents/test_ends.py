"""However the SDK ends a run, its outcome says how, and its last step is judged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import (
    MaxTurnsExceeded,
    ModelBehaviorError,
    RunErrorHandlerResult,
    StopAtTools,
    ToolOutputText,
    ToolsToFinalOutputResult,
    ToolTimeoutError,
    function_tool,
)
from pydantic import BaseModel

from reasonblocks_openai_agents import SteeredRun, openai_run_streamed, steering_of
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


@every_way
def test_too_many_turns_are_a_failure_whose_last_step_is_judged_with_its_results(way: str) -> None:
    judged = Judged()
    with place(in_turn(*looks(9)), way) as here, pytest.raises(MaxTurnsExceeded) as caught:
        here.run(steering(scorer=judged), fixer(), max_turns=2)
    run = steering_of(caught.value)
    assert run.outcome == "failure: MaxTurnsExceeded"
    assert [entry.step for entry in run.step_log] == [0, 1]
    assert judged.results == [[("f0 is empty", None)], [("f1 is empty", None)]]


def test_too_many_turns_are_a_failure_also_when_nobody_reads_the_stream() -> None:
    with place(in_turn(*looks(9)), "run_streamed/responses") as here:

        async def run() -> SteeredRun:
            result = openai_run_streamed(steering(), fixer(), TASK, run_config=here.config(), max_turns=2)
            assert result.run_loop_task is not None
            await asyncio.wait([result.run_loop_task])
            return steering_of(result)

        assert here.until(run()).outcome == "failure: MaxTurnsExceeded"


@whole_and_streamed
def test_no_limit_of_turns_is_no_limit(way: str) -> None:
    with place(in_turn(*looks(12)), way) as here:
        assert steering_of(here.run(steering(), fixer(), max_turns=None)).outcome == "success"


@every_way
@pytest.mark.parametrize("answer", ["Enough.", RunErrorHandlerResult(final_output="Enough.")])
def test_a_run_whose_caller_handles_too_many_turns_has_succeeded(answer: Any, way: str) -> None:
    handlers: Any = {"max_turns": lambda given: answer}
    with place(in_turn(*looks(9)), way) as here:
        result = here.run(steering(), fixer(), max_turns=2, error_handlers=handlers)
        assert (result.final_output, steering_of(result).outcome) == ("Enough.", "success")


@every_way
@pytest.mark.parametrize(
    "behavior", ["stop_on_first_tool", StopAtTools(stop_at_tool_names=["look"]), "a function"], ids=str
)
def test_a_run_that_ends_on_a_tool_has_succeeded(behavior: Any, way: str) -> None:
    def done(context: Any, results: list[Any]) -> Any:
        return ToolsToFinalOutputResult(is_final_output=True, final_output=results[0].output)

    judged = Judged()
    given = done if behavior == "a function" else behavior
    with place(in_turn(*looks(9)), way) as here:
        result = here.run(steering(scorer=judged), fixer(tool_use_behavior=given))
        assert (result.final_output, steering_of(result).outcome) == ("f0 is empty", "success")
    assert judged.results == [[("f0 is empty", None)]]


class Report(BaseModel):
    files: int


@every_way
def test_a_structured_answer_is_an_answer(way: str) -> None:
    with place(in_turn(*looks(1)[:1], said('{"files": 3}')), way) as here:
        result = here.run(steering(), fixer(output_type=Report))
        assert result.final_output == Report(files=3)
        run = steering_of(result)
        assert run.final is not None
        assert (run.outcome, run.final.thought_preview) == ("success", '{"files": 3}')


@every_way
def test_an_answer_that_is_not_structured_as_it_should_be_is_a_failure(way: str) -> None:
    with place(in_turn(said("three")), way) as here, pytest.raises(ModelBehaviorError) as caught:
        here.run(steering(), fixer(output_type=Report))
    assert steering_of(caught.value).outcome == "failure: ModelBehaviorError"


@every_way
def test_a_call_of_a_tool_that_does_not_exist_is_a_failure(way: str) -> None:
    with place(in_turn(call("dance", "c0"), said()), way) as here, pytest.raises(ModelBehaviorError) as caught:
        here.run(steering(), fixer())
    run = steering_of(caught.value)
    assert run.outcome == "failure: ModelBehaviorError"
    assert [entry.tool_calls for entry in run.step_log] == [("dance",)]


# ------------------------------------------------------------ tools


@every_way
def test_a_tool_whose_exception_is_the_callers_ends_the_run_as_failed(way: str) -> None:
    @function_tool(failure_error_function=None)
    def burst(path: str) -> str:
        raise LookupError(path)

    turns = in_turn(call("burst", "c0", path="a"), said())
    with place(turns, way) as here, pytest.raises(Exception, match="a") as caught:
        here.run(steering(), fixer(tools=[burst]))
    kind = type(caught.value).__name__
    run = steering_of(caught.value)
    assert (run.outcome, [entry.error for entry in run.step_log]) == (f"failure: {kind}", [None])


@function_tool(timeout=0.01)
async def wait(path: str) -> str:
    await asyncio.Event().wait()
    return "never"


@function_tool(timeout=0.01, timeout_behavior="raise_exception")
async def wait_or_fail(path: str) -> str:
    await asyncio.Event().wait()
    return "never"


@whole_and_streamed
def test_a_tool_that_takes_too_long_is_an_error_of_its_step(way: str) -> None:
    judged = Judged()
    with place(in_turn(call("wait", "c0", path="a"), said()), way) as here:
        here.run(steering(scorer=judged), fixer(tools=[wait]))
    ((text, is_error),), _ = judged.results
    assert ("timed out" in text, is_error) == (True, True)


@whole_and_streamed
def test_a_tool_that_takes_too_long_can_end_the_run(way: str) -> None:
    turns = in_turn(call("wait_or_fail", "c0", path="a"), said())
    with place(turns, way) as here, pytest.raises(ToolTimeoutError) as caught:
        here.run(steering(), fixer(tools=[wait_or_fail]))
    assert steering_of(caught.value).outcome == "failure: ToolTimeoutError"


@function_tool
def listing(path: str) -> list[ToolOutputText]:
    return [ToolOutputText(text="one"), ToolOutputText(text="two")]


@function_tool
def number(path: str) -> int:
    return 42


@function_tool
def nothing(path: str) -> None:
    return None


@function_tool
def mapping(path: str) -> dict[str, int]:
    return {"files": 3}


@whole_and_streamed
@pytest.mark.parametrize("behavior", ["run_llm_again", "stop_on_first_tool"])
@pytest.mark.parametrize(
    ("tool", "text"), [(listing, "one\ntwo"), (number, "42"), (nothing, "None"), (mapping, "{'files': 3}")]
)
def test_what_a_tool_gives_is_what_the_model_reads_of_it_or_would_have_read(
    tool: Any, text: str, behavior: str, way: str
) -> None:
    judged = Judged()
    with place(in_turn(call(tool.name, "c0", path="a"), said()), way) as here:
        here.run(steering(scorer=judged), fixer(tools=[tool], tool_use_behavior=behavior))
    assert judged.results[0] == [(text, None)]
