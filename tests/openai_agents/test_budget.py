"""The SDK's `max_turns` is told in calls, to the one after which the SDK ends the run."""

from __future__ import annotations

from typing import Any

import pytest
from agents import MaxTurnsExceeded, RunState, function_tool

from reasonblocks_openai_agents import SteeredRun, openai_run, steering_of
from tests.budget import LANDING, LAST, auto, lines, numbered
from tests.openai_agents.world import (
    TASK,
    as_tool,
    asking,
    by_model,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    named,
    place,
    whole_and_streamed,
)


@every_way
def test_max_turns_are_told_in_calls(way: str) -> None:
    with place(in_turn(*looks(30)), way) as here:
        with pytest.raises(MaxTurnsExceeded) as caught:
            here.run(auto(), fixer(), max_turns=12)
        assert len(here.requests) == 12
    told = numbered(steering_of(caught.value).step_log)
    assert told == {6: "Budget: at most 6 calls are left.", 9: LANDING, 11: LAST}


@whole_and_streamed
@pytest.mark.parametrize("turns", [1, 2, 5])
def test_the_answer_of_the_last_call_comes_through(turns: int, way: str) -> None:
    with place(in_turn(*looks(turns - 1)), way) as here:
        result = here.run(auto(), fixer(), max_turns=turns)
    assert (result.final_output, lines(steering_of(result).step_log)[-1]) == ("All seen.", LAST)


@whole_and_streamed
def test_the_sdks_default_is_told(way: str) -> None:
    with place(in_turn(*looks(30)), way) as here:
        with pytest.raises(MaxTurnsExceeded) as caught:
            here.run(auto(), fixer())
        assert lines(steering_of(caught.value).step_log).index(LAST) + 1 == len(here.requests)


@whole_and_streamed
def test_without_a_limit_nothing_is_told(way: str) -> None:
    with place(in_turn(*looks(12)), way) as here:
        run = steering_of(here.run(auto(), fixer(), max_turns=None))
    assert lines(run.step_log) == [""] * 13


def test_an_agent_in_a_tool_is_told_nothing_of_its_callers_limit() -> None:
    inner = named("inner", function_tool(lambda path: "empty", name_override="look", description_override="Looks."))
    with place(by_model(outer=[asking("inner", "Look."), *looks(0)], inner=looks(2))) as here:
        run = steering_of(here.run(auto(), named("outer", as_tool(inner)), max_turns=3))
    assert [lines(child.step_log) for child in run.children] == [[""] * 3]


@pytest.mark.parametrize("keeps", [True, False], ids=["with its snapshot", "without it"])
def test_a_run_that_goes_on_after_an_approval_has_the_rest_of_its_turns(keeps: bool) -> None:
    @function_tool(needs_approval=True)
    def ask(path: str) -> str:
        """Needs an approval."""
        return "done"

    turns = [*looks(3)[:3], call("ask", "a0", "I ask.", path="a"), *looks(30, "more")]
    with place(in_turn(*turns)) as here:

        async def run() -> tuple[int, SteeredRun]:
            agent = fixer()
            agent.tools.append(ask)
            options: Any = {"run_config": here.config(), "max_turns": 7}
            result = await openai_run(auto(), agent, TASK, **options)
            state = result.to_state()
            state.approve(result.interruptions[0])
            again = await RunState.from_string(agent, state.to_string())
            snapshot = steering_of(result).snapshot() if keeps else None
            before = len(here.requests)
            with pytest.raises(MaxTurnsExceeded) as caught:
                await openai_run(auto(), agent, again, snapshot=snapshot, run_config=here.config())
            return before, steering_of(caught.value)

        before, resumed = here.until(run())
        assert (before, len(here.requests)) == (4, 7)
    assert [line for line in lines(resumed.step_log) if line] == [LANDING, LAST]
