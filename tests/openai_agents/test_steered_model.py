"""A steered model object steers the runs of the SDK's own `Runner`, each by what its requests say."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from agents import Agent, ModelSettings
from openai import BadRequestError, InternalServerError

from reasonblocks_openai_agents import openai_model, steering_of
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked, ProviderError
from tests.openai_agents.world import (
    PROMPT,
    TASK,
    Judged,
    Place,
    awaited,
    by_model,
    by_task,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    one_by_one,
    place,
    retrying,
    said,
    whole_and_streamed,
)
from tests.steered import steering

RUNS = 20
BROKEN = Turn(error=LookupError("no such thing"))


@every_way
def test_its_runs_are_guided_and_recorded(way: str) -> None:
    judged = Judged()
    with place(in_turn(*looks(4)), way) as here:
        model = openai_model(steering(scorer=judged), here.model("own"), run_id="run-1")
        result = here.plain(fixer(model=model))
        assert here.guided == [True, True, False, False, True]
        assert "REASONBLOCKS" not in repr(result.to_input_list())
    (run,) = model.runs.values()
    assert (run.run.run_id, run.outcome, run.run.task, run.run.model) == ("run-1", "success", TASK, "own")
    assert [entry.step for entry in model.step_log] == [0, 1, 2, 3, 4]
    assert judged.results[:2] == [[("f0 is empty", None)], [("f1 is empty", None)]]
    assert model.final is not None


@every_way
def test_tokens_and_tools_are_in_its_log(way: str) -> None:
    settings = ModelSettings(include_usage=True)
    with place(in_turn(*looks(1)), way) as here:
        model = openai_model(steering(), here.model("own"))
        here.plain(fixer(model=model, model_settings=settings))
    assert [(entry.model_id, entry.tokens, entry.tool_calls) for entry in model.step_log] == [
        ("own", 110, ("look",)),
        ("own", 110, ()),
    ]


@whole_and_streamed
def test_the_tail_is_the_end_of_its_requests(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        model = openai_model(steering(), here.model("own"), placement="tail")
        here.plain(fixer(model=model))
        assert {asked.system for asked in here.requests} == {PROMPT}
        assert ["[REASONBLOCKS]" in asked.texts[-1] for asked in here.requests] == [True, True]


@every_way
def test_a_second_run_is_a_run_of_its_own(way: str) -> None:
    with place(one_by_one(*looks(2), *looks(2, "again")), way) as here:
        model = openai_model(steering(), here.model("own"), run_id="run")
        agent = fixer(model=model)
        before = here.plain(agent).to_input_list()
        here.plain(agent, [*before, {"role": "user", "content": "And the docs?"}])
        assert here.guided == [True, True, False] * 2
    assert [(run.run.run_id, run.outcome, run.run.task) for run in model.runs.values()] == [
        ("run", "success", TASK),
        ("run.2", "success", "And the docs?"),
    ]


@awaited
def test_runs_at_once_do_not_mix(way: str) -> None:
    async def many(here: Place) -> None:
        agent = fixer(model=model)
        await asyncio.gather(*(here.aplain(agent, f"task {at}") for at in range(8)))

    with place(by_task, way) as here:
        model = openai_model(steering(), here.model("own"))
        here.until(many(here))
    assert {run.run.task for run in model.runs.values()} == {f"task {at}" for at in range(8)}
    for run in model.runs.values():
        assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2, 3])
        assert [entry.difficulty for entry in run.step_log] == [None, 0.4, 0.4, 0.4]


@every_way
def test_a_handoff_to_an_agent_with_the_same_model_stays_in_the_run(way: str) -> None:
    turns = (call("look", "c0", path="a"), call("transfer_to_second", "c1"), call("look", "c2", path="b"), said())
    with place(one_by_one(*turns), way) as here:
        model = openai_model(steering(), here.model("own"))
        here.plain(fixer(model=model, handoffs=[fixer(name="second", model=model)]))
    (run,) = model.runs.values()
    assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2, 3])


@every_way
def test_the_agent_of_a_tool_with_the_same_model_has_a_run_of_its_own(way: str) -> None:
    def answer(asked: Asked) -> Turn:
        outer = [call("ask", "a0", input="Look."), said()]
        return (looks(3) if asked.task == "Look." else outer)[asked.answers]

    with place(answer, way) as here:
        model = openai_model(steering(), here.model("own"))
        inner = fixer(name="inner", model=model)
        here.plain(fixer(model=model, tools=[inner.as_tool("ask", "Asks.")]))
    outer, child = model.runs.values()
    assert [(run.run.task, run.outcome) for run in (outer, child)] == [(TASK, "success"), ("Look.", "success")]
    assert child.run.parent_run_id == outer.run.run_id
    assert [[entry.step for entry in run.step_log] for run in (outer, child)] == [[0, 1], [0, 1, 2, 3]]


@whole_and_streamed
@pytest.mark.parametrize(
    ("chain", "placement"),
    [({"conversation_id": "conv"}, "tail"), ({"auto_previous_response_id": True}, "system")],
)
def test_a_servers_conversation_is_one_run(chain: dict[str, Any], placement: Any, way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        model = openai_model(steering(placement=placement), here.model("own"))
        here.plain(fixer(model=model), **chain)
        assert [asked.texts for asked in here.requests[1:]] == [(f"f{at} is empty",) for at in range(3)]
        assert ["[REASONBLOCKS]" in asked.system for asked in here.requests] == [True, True, False, False]
    (run,) = model.runs.values()
    assert [entry.step for entry in run.step_log] == [0, 1, 2, 3]


# ------------------------------------------------------------ what goes wrong


@every_way
def test_a_run_that_raises_stays_open_until_it_is_closed(way: str) -> None:
    with place(one_by_one(looks(1)[0], BROKEN), way) as here:
        model = openai_model(steering(), here.model("own"))
        with pytest.raises(BadRequestError):
            here.plain(fixer(model=model))
        (run,) = model.runs.values()
        assert run.outcome is None
        assert "no such thing" in (run.step_log[1].error or "")
        here.until(model.close())
    assert [one.outcome for one in model.runs.values()] == ["failure: abandoned"]


@every_way
@pytest.mark.parametrize("call_number", [0, 1])
def test_tries_of_a_call_are_attempts_of_one_entry(call_number: int, way: str) -> None:
    turns = looks(1)
    turns[call_number:call_number] = [Turn(error=ProviderError("busy", status=503))] * 2
    with place(one_by_one(*turns), way) as here:
        model = openai_model(steering(), here.model("own"))
        here.plain(fixer(model=model, model_settings=retrying(2)))
        assert here.guided == [True] * 4
    (run,) = model.runs.values()
    assert [entry.attempts for entry in run.step_log] == [3 if at == call_number else 1 for at in range(2)]
    assert run.outcome == "success"


def test_tries_of_many_runs_at_once_stay_in_their_runs() -> None:
    together, first, lock = threading.Barrier(RUNS), set[str](), threading.Lock()

    def answer(asked: Asked) -> Turn:
        with lock:
            again = asked.task in first or asked.answers > 0
            first.add(asked.task)
        if not again:
            together.wait(60)
            raise ProviderError("busy", status=503)
        return by_task(asked)

    async def many(here: Place) -> None:
        agent = fixer(model=model, model_settings=retrying(1))
        await asyncio.gather(*(here.aplain(agent, f"task {at}") for at in range(RUNS)))

    with place(answer) as here:
        model = openai_model(steering(), here.model("own"))
        here.until(many(here))
    assert [[entry.attempts for entry in run.step_log] for run in model.runs.values()] == [[2, 1, 1, 1]] * RUNS


@whole_and_streamed
def test_a_call_whose_tries_are_used_up_leaves_no_run_that_a_later_one_joins(way: str) -> None:
    busy = [Turn(error=ProviderError("busy", status=503))] * 2
    with place(one_by_one(*busy, *looks(1)), way) as here:
        model = openai_model(steering(), here.model("own"))
        agent = fixer(model=model, model_settings=retrying(1))
        with pytest.raises(InternalServerError):
            here.plain(agent)
        here.plain(agent)
    assert [[entry.attempts for entry in run.step_log] for run in model.runs.values()] == [[2], [1, 1]]


# ------------------------------------------------------------ how it ends


@whole_and_streamed
@pytest.mark.parametrize("asynchronous", [True, False])
def test_leaving_it_finishes_what_is_open_as_abandoned(asynchronous: bool, way: str) -> None:
    async def run(here: Place, model: Any) -> None:
        agent: Agent[Any] = fixer(model=model)
        if asynchronous:
            async with model:
                await here.aplain(agent, max_turns=1)
        with model:
            await here.aplain(agent, max_turns=1)

    with place(one_by_one(*looks(9)), way) as here:
        model = openai_model(steering(), here.model("own"))
        with pytest.raises(Exception, match="Max turns"):
            here.until(run(here, model))
    assert [one.outcome for one in model.runs.values()] == ["failure: abandoned"]


# ------------------------------------------------------------ model objects of agents in tools


@whole_and_streamed
def test_each_call_of_a_model_object_in_a_tool_is_a_step_of_its_agents_run(way: str) -> None:
    own, inner = [call("ask", input="Look."), said()], looks(3)
    with place(by_model(own=own, inner=inner), way) as at:
        reader: Agent[Any] = fixer(name="reader", model=at.model("inner"))
        result = at.run(steering(), fixer(tools=[reader.as_tool("ask", "Asks.")]))
        bodies = [str(request.body) for request in at.requests if request.model == "inner"]
    (child,) = steering_of(result).children
    assert [entry.tool_calls for entry in child.step_log] == [("look",), ("look",), ("look",), ()]
    assert [entry.error for entry in child.step_log] == [None] * 4
    assert [entry.difficulty for entry in child.step_log] == [None, 0.4, 0.4, 0.4]
    assert ["Check before you say" in body for body in bodies] == [True, False, False, False]
