"""The caller's own hooks hear what they hear without steering; what they raise is the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, AgentHooks, RunHooks

from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import (
    Place,
    by_model,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    place,
    said,
    steering,
    whole_and_streamed,
)

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
