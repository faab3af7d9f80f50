"""A handoff goes on with the same run: one numbering, one step log, guidance for whoever speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, handoff
from agents.extensions.handoff_filters import remove_all_tools
from agents.handoffs import HandoffInputData

from reasonblocks_openai_agents import SteeredRun, steering_of
from tests.openai_agents.world import (
    TASK,
    Judged,
    Place,
    call,
    every_way,
    fixer,
    one_by_one,
    place,
    said,
    whole_and_streamed,
)
from tests.steered import steering

TURNS = (
    call("look", "c0", "I look.", path="a"),
    call("transfer_to_second", "c1", "You go on."),
    call("look", "c2", "I look, too.", path="b"),
    said(),
)


def second() -> Agent[Any]:
    return fixer(name="second", instructions="You go on.", model="other")


def run_of(here: Place, agent: Agent[Any], **options: Any) -> tuple[SteeredRun, Judged]:
    judged = Judged()
    return steering_of(here.run(steering(scorer=judged), agent, **options)), judged


@every_way
def test_a_handoff_stays_in_the_run(way: str) -> None:
    with place(one_by_one(*TURNS), way) as here:
        run, _ = run_of(here, fixer(handoffs=[second()]))
        assert [entry.step for entry in run.step_log] == [0, 1, 2, 3]
        assert [entry.model_id for entry in run.step_log] == ["own", "own", "other", "other"]
        assert (run.outcome, run.children, run.agent_name) == ("success", [], "second")
        assert here.guided == [True, True, False, False]


@every_way
def test_the_step_that_hands_off_holds_what_came_back(way: str) -> None:
    with place(one_by_one(*TURNS), way) as here:
        _, judged = run_of(here, fixer(handoffs=[second()]))
    results = [[(one.name, one.output) for one in step.tool_results] for step in judged.steps]
    assert results == [
        [("look", "a is empty")],
        [("transfer_to_second", '{"assistant": "second"}')],
        [("look", "b is empty")],
        [],
    ]


def only_the_question(data: HandoffInputData) -> HandoffInputData:
    return data.clone(pre_handoff_items=(), new_items=())


@whole_and_streamed
@pytest.mark.parametrize("own", [remove_all_tools, only_the_question])
def test_a_step_is_judged_whatever_a_handoff_filter_leaves(own: Callable[..., Any], way: str) -> None:
    with place(one_by_one(*TURNS), way) as here:
        run, judged = run_of(here, fixer(handoffs=[handoff(second(), input_filter=own)]))
        assert judged.thoughts == ["I look.", "You go on.", "I look, too.", "All seen."]
        assert [entry.step for entry in run.step_log] == [0, 1, 2, 3]


@whole_and_streamed
def test_a_nested_history_leaves_the_run_as_it_is(way: str) -> None:
    with place(one_by_one(*TURNS), way) as here:
        config = here.config(nest_handoff_history=True)
        run, judged = run_of(here, fixer(handoffs=[second()]), run_config=config)
        assert judged.thoughts == ["I look.", "You go on.", "I look, too.", "All seen."]
        assert run.session.run.task == TASK


@whole_and_streamed
def test_agents_that_hand_off_to_each_other_stay_in_the_run(way: str) -> None:
    first, other = fixer(name="first"), second()
    first.handoffs, other.handoffs = [other], [first]
    turns = (call("transfer_to_second", "c0"), call("transfer_to_first", "c1"), call("look", "c2", path="a"), said())
    with place(one_by_one(*turns), way) as here:
        run, _ = run_of(here, first)
        assert [entry.model_id for entry in run.step_log] == ["own", "other", "own", "own"]
        assert run.children == []


@whole_and_streamed
def test_agents_of_one_name_stay_in_the_run(way: str) -> None:
    twin = fixer(model="other")
    turns = (call("transfer_to_fixer", "c0"), call("look", "c1", path="a"), said())
    with place(one_by_one(*turns), way) as here:
        run, _ = run_of(here, fixer(handoffs=[twin]))
        assert [entry.model_id for entry in run.step_log] == ["own", "other", "other"]
