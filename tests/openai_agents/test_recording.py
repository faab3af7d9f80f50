"""Recording hooks say what steering would decide, and change nothing of a run."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from agents import Agent, MaxTurnsExceeded, RunState
from openai import BadRequestError

from reasonblocks.exceptions import ConfigError
from reasonblocks.testing import Turn, tool_call
from reasonblocks.testing.server import Asked
from reasonblocks_openai_agents import RecordingHooks, openai_hooks, steering_of
from tests.openai_agents.other_process import alone
from tests.openai_agents.world import (
    PROMPT,
    TASK,
    Judged,
    Place,
    by_model,
    call,
    crash,
    every_way,
    fixer,
    in_turn,
    look,
    looks,
    one_by_one,
    place,
    said,
    steering,
    whole_and_streamed,
)

OFTEN = {"model_routing": {"NORMAL": "strong"}, "standing_rules": "run"}
IDS = re.compile(r'"(?:resp|msg|fc|rs|chatcmpl)_[0-9a-f]+"')
"""Those that the server makes."""


def bodies(here: Place) -> list[str]:
    return [IDS.sub('"id"', json.dumps(asked.body)) for asked in here.requests]


def recorded(here: Place, rb: Any, agent: Agent[Any], **options: Any) -> RecordingHooks:
    hooks = openai_hooks(rb)
    here.plain(agent, hooks=hooks, **options)
    return hooks


@every_way
def test_requests_are_those_of_a_run_without_hooks(way: str) -> None:
    sent: list[list[str]] = []
    for hooks in (None, openai_hooks(steering(**OFTEN))):
        with place(in_turn(*looks(3)), way) as here:
            here.plain(fixer(), hooks=hooks)
            sent.append(bodies(here))
    assert len(sent[0]) == 4
    assert sent[0] == sent[1]


@every_way
def test_what_is_recorded_is_what_would_have_been_decided(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        steered = steering_of(here.run(steering(), fixer()))
        hooks = recorded(here, steering(), fixer())
    (run,) = hooks.runs.values()
    decided = [(entry.step, entry.difficulty, entry.fsm_state, entry.gate_decision) for entry in run.step_log]
    assert decided == [
        (entry.step, entry.difficulty, entry.fsm_state, entry.gate_decision) for entry in steered.step_log
    ]
    assert (run.outcome, run.run.task, run.run.agent_name, run.run.model) == ("success", TASK, "fixer", "own")
    assert [entry.model_id for entry in run.step_log] == ["own"] * 4
    assert run.final is not None


@every_way
def test_steps_have_their_results(way: str) -> None:
    judged = Judged()
    turns = (call("look", "c0", "I look.", path="a"), call("crash", "c1", "I try.", path="b"), said())
    with place(in_turn(*turns), way) as here:
        recorded(here, steering(scorer=judged), fixer(tools=[look, crash]))
    assert judged.thoughts == ["I look.", "I try.", "All seen."]
    assert [[is_error for _, is_error in step] for step in judged.results] == [[None], [True], []]


@every_way
def test_a_handoff_stays_in_the_run(way: str) -> None:
    turns = (call("look", "c0", path="a"), call("transfer_to_second", "c1"), call("look", "c2", path="b"), said())
    with place(one_by_one(*turns), way) as here:
        hooks = recorded(here, steering(), fixer(handoffs=[fixer(name="second", model="other")]))
    (run,) = hooks.runs.values()
    assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2, 3])
    assert [entry.model_id for entry in run.step_log] == ["own", "own", "other", "other"]


@whole_and_streamed
def test_the_agent_of_a_tool_is_not_of_the_run(way: str) -> None:
    inner = fixer(name="inner", model="inner")
    answer = by_model(own=[call("ask", "a0", input="Look."), said()], inner=looks(2))
    with place(answer, way) as here:
        hooks = recorded(here, steering(), fixer(tools=[inner.as_tool("ask", "Asks.")]))
    (run,) = hooks.runs.values()
    assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1])


@whole_and_streamed
def test_hooks_given_to_a_tool_record_its_agent(way: str) -> None:
    hooks = openai_hooks(steering())
    inner = fixer(name="inner", model="inner")
    answer = by_model(own=[call("ask", "a0", input="Look."), said()], inner=looks(2))
    with place(answer, way) as here:
        here.plain(fixer(tools=[inner.as_tool("ask", "Asks.", hooks=hooks)]), hooks=hooks)
    assert [(run.run.task, run.outcome, len(run.step_log)) for run in hooks.runs.values()] == [
        (TASK, "success", 2),
        ("Look.", "success", 3),
    ]


def by_task(asked: Asked) -> Turn:
    return looks(3, mark=asked.task)[asked.answers]


@whole_and_streamed
def test_hooks_given_to_a_tool_tell_its_agents_apart_that_run_at_once(way: str) -> None:
    def answer(asked: Asked) -> Turn:
        return by_task(asked) if asked.model == "inner" else [both, said()][asked.answers]

    hooks = openai_hooks(steering())
    inner = fixer(name="inner", model="inner")
    both = Turn(tool_calls=tuple(tool_call(f"a{at}", "ask", {"input": f"task {at}"}) for at in range(3)))
    with place(answer, way) as here:
        here.plain(fixer(tools=[inner.as_tool("ask", "Asks.", hooks=hooks)]))
    assert [(run.outcome, len(run.step_log)) for run in hooks.runs.values()] == [("success", 4)] * 3
    assert [run.final.step if run.final else None for run in hooks.runs.values()] == [4] * 3


@pytest.mark.parametrize("way", ["run/responses", "run_streamed/responses", "run/chat", "run_streamed/chat"])
def test_one_object_serves_runs_at_once(way: str) -> None:
    async def many(here: Place) -> None:
        await asyncio.gather(*(here.aplain(fixer(), f"task {at}", hooks=hooks) for at in range(8)))

    hooks = openai_hooks(steering(), run_id="run")
    with place(by_task, way) as here:
        here.until(many(here))
    assert {run.run.task for run in hooks.runs.values()} == {f"task {at}" for at in range(8)}
    assert list(hooks.runs) == ["run", *(f"run.{at}" for at in range(2, 9))]
    for run in hooks.runs.values():
        assert (run.outcome, [entry.difficulty for entry in run.step_log]) == ("success", [None, 0.4, 0.4, 0.4])


@every_way
def test_a_run_that_raises_stays_open_until_the_hooks_are_closed(way: str) -> None:
    hooks = openai_hooks(steering())
    turns = (looks(1)[0], Turn(error=LookupError("no such thing")))
    with place(one_by_one(*turns), way) as here, pytest.raises(BadRequestError):
        here.plain(fixer(), hooks=hooks)
    (run,) = hooks.runs.values()
    assert run.outcome is None
    hooks.close()
    assert [one.outcome for one in hooks.runs.values()] == ["failure: abandoned"]


@whole_and_streamed
def test_leaving_them_finishes_what_is_open_as_abandoned(way: str) -> None:
    with place(in_turn(*looks(9)), way) as here, openai_hooks(steering()) as hooks, pytest.raises(MaxTurnsExceeded):
        here.plain(fixer(), hooks=hooks, max_turns=2)
    assert [one.outcome for one in hooks.runs.values()] == ["failure: abandoned"]


@whole_and_streamed
def test_a_run_that_ends_on_a_tool_is_over(way: str) -> None:
    judged = Judged()
    with place(in_turn(*looks(9)), way) as here:
        hooks = recorded(here, steering(scorer=judged), fixer(tool_use_behavior="stop_on_first_tool"))
    assert [one.outcome for one in hooks.runs.values()] == ["success"]
    assert judged.results == [[("f0 is empty", None)]]


@whole_and_streamed
def test_a_run_that_waits_for_an_approval_goes_on_in_its_process(way: str) -> None:
    hooks, agent = openai_hooks(steering()), alone()
    with place(in_turn(*looks(2)), way) as here:
        result = here.plain(agent, hooks=hooks)
        while result.interruptions:
            state: RunState[Any, Any] = result.to_state()
            for one in result.interruptions:
                state.approve(one)
            result = here.plain(agent, state, hooks=hooks)
    entries = [(run.outcome, [entry.step for entry in run.step_log]) for run in hooks.runs.values()]
    assert entries == [("success", [0, 1, 2])]


@whole_and_streamed
def test_a_second_run_is_a_run_of_its_own(way: str) -> None:
    hooks = openai_hooks(steering(), run_id="run")
    with place(one_by_one(*looks(1), *looks(1, "again")), way) as here:
        before = here.plain(fixer(), hooks=hooks).to_input_list()
        here.plain(fixer(), [*before, {"role": "user", "content": "And the docs?"}], hooks=hooks)
    assert [(run.run.run_id, run.run.task) for run in hooks.runs.values()] == [
        ("run", TASK),
        ("run.2", "And the docs?"),
    ]


def test_a_wrong_option_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigError, match="placement"):
        openai_hooks(steering(), placement="context")


@whole_and_streamed
def test_beside_a_steered_run_they_record_the_same_run_as_another(way: str) -> None:
    hooks = openai_hooks(steering())
    with place(in_turn(*looks(2)), way) as here:
        run = steering_of(here.run(steering(), fixer(), hooks=hooks))
        assert [asked.system.startswith(PROMPT) for asked in here.requests] == [True] * 3
    (recorded_run,) = hooks.runs.values()
    assert [entry.difficulty for entry in recorded_run.step_log] == [entry.difficulty for entry in run.step_log]
