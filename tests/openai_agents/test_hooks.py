"""Recording hooks report what steering would decide; the caller's own hooks hear what they hear without steering."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, AgentHooks, MaxTurnsExceeded, RunHooks, RunState, function_tool
from openai import BadRequestError

from reasonblocks_openai_agents import RecordingHooks, openai_hooks, steering_of
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked
from tests.openai_agents.other_process import alone
from tests.openai_agents.world import (
    PROMPT,
    TASK,
    Judged,
    Place,
    awaited,
    by_model,
    by_task,
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
    whole_and_streamed,
)
from tests.steered import steering

# ------------------------------------------------------------ recording hooks


OFTEN: dict[str, Any] = {"model_routing": {"NORMAL": "strong"}, "standing_rules": "run"}


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
            sent.append(here.bodies)
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


@awaited
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


@whole_and_streamed
def test_beside_a_steered_run_they_record_the_same_run_as_another(way: str) -> None:
    hooks = openai_hooks(steering())
    with place(in_turn(*looks(2)), way) as here:
        run = steering_of(here.run(steering(), fixer(), hooks=hooks))
        assert [asked.system.startswith(PROMPT) for asked in here.requests] == [True] * 3
    (recorded_run,) = hooks.runs.values()
    assert [entry.difficulty for entry in recorded_run.step_log] == [entry.difficulty for entry in run.step_log]


# ------------------------------------------------------------ recording is a guest


class Lazy:
    """Cannot be read any more, but for its text."""

    @property
    def type(self) -> str:
        raise LookupError("the connection is closed")

    def __str__(self) -> str:
        return "A row."


@function_tool(name_override="look")
def rows(path: str) -> Lazy:
    """Looks at a table."""
    return Lazy()


@whole_and_streamed
def test_a_result_that_cannot_be_read_is_said_and_the_run_goes_on(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with place(in_turn(*looks(1)), way) as at, caplog.at_level(logging.WARNING, logger="reasonblocks"):
        result = at.plain(fixer(tools=[rows]), hooks=openai_hooks(steering(strict=False)))
        assert result.final_output == "All seen."
        assert "ending a tool" in caplog.text


# ------------------------------------------------------------ hooks of the caller


NAMES = [name for name in dir(RunHooks) if name.startswith("on_")]
"""Those of newer versions of the SDK, too."""


def noting(name: str) -> Callable[..., Any]:
    async def note(self: Noting, context: Any, *args: Any, **kwargs: Any) -> None:
        self.heard.append((name, *(getattr(one, "name", type(one).__name__) for one in (*args, *kwargs.values()))))

    return note


class Noting(RunHooks[Any]):
    """Notes every hook that is called, and whom it is about."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []


for _name in NAMES:
    setattr(Noting, _name, noting(_name))


def raising(name: str) -> Noting:
    async def fail(self: Noting, *args: Any, **kwargs: Any) -> None:
        raise LookupError(name)

    return type("Raising", (Noting,), {name: fail})()  # type: ignore[no-any-return]


def two_agents() -> Agent[Any]:
    """One that looks and then hands off, and one that looks and then answers."""
    return fixer(model="one", handoffs=[fixer(name="second", model="two")])


HANDED_OFF = by_model(
    one=[call("look", "c0", path="a"), call("transfer_to_second", "c1")],
    two=[said(), said(), call("look", "c2", path="b"), said()],
)


@every_way
def test_the_callers_hooks_hear_what_they_hear_without_steering(way: str) -> None:
    heard: list[list[tuple[str, ...]]] = []
    for run in (lambda here, hooks: here.run(steering(), two_agents(), hooks=hooks), steered_by_nobody):
        hooks = Noting()
        with place(HANDED_OFF, way) as here:
            run(here, hooks)
        heard.append(hooks.heard)
    assert heard[0] == heard[1]
    assert {"on_agent_start", "on_llm_start", "on_llm_end", "on_tool_start", "on_tool_end", "on_handoff"} < {
        one[0] for one in heard[0]
    }


def steered_by_nobody(here: Place, hooks: Noting) -> None:
    here.plain(two_agents(), hooks=hooks)


@whole_and_streamed
def test_the_callers_hook_sees_the_request_with_its_guidance(way: str) -> None:
    class Reading(RunHooks[Any]):
        async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
            prompts.append(system_prompt)

    prompts: list[str] = []
    with place(in_turn(*looks(1)), way) as here:
        here.run(steering(), fixer(), hooks=Reading())
        assert prompts == [asked.system for asked in here.requests]


@whole_and_streamed
@pytest.mark.parametrize("name", NAMES)
def test_what_a_hook_raises_is_raised_to_its_caller(name: str, way: str) -> None:
    errors: list[str] = []
    for run in (
        lambda here, hooks: here.run(steering(), two_agents(), hooks=hooks),
        steered_by_nobody,
    ):
        with place(HANDED_OFF, way) as here, pytest.raises(Exception) as caught:  # noqa: PT011 - as without us
            run(here, raising(name))
        errors.append(repr(caught.value))
    assert errors[0] == errors[1]
    assert name in errors[0]


@whole_and_streamed
def test_a_run_that_a_hook_ends_has_failed(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here, pytest.raises(LookupError) as caught:
        here.run(steering(), fixer(), hooks=raising("on_llm_end"))
    run = steering_of(caught.value)
    assert run.outcome == "failure: LookupError"
    assert [(entry.step, entry.attempts, entry.error) for entry in run.step_log] == [(0, 1, None)]


@whole_and_streamed
def test_hooks_of_the_agent_are_called_as_ever(way: str) -> None:
    class Own(AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            heard.append("start")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            heard.append(result)

        async def on_end(self, context: Any, agent: Any, output: Any) -> None:
            heard.append(output)

    heard: list[str] = []
    with place(in_turn(*looks(1)), way) as here:
        here.run(steering(), fixer(hooks=Own()))
    assert heard == ["start", "f0 is empty", "All seen."]


@whole_and_streamed
def test_hooks_of_a_wrong_kind_are_refused_by_the_sdk(way: str) -> None:
    with place(in_turn(said()), way) as here:
        with pytest.raises(TypeError, match="RunHooks"):
            here.run(steering(), fixer(), hooks=AgentHooks())
        assert here.requests == []
