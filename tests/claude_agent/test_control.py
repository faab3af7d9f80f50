"""The controls in a session of the real CLI: observing it, and ending it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from claude_agent_sdk import ClaudeSDKClient, Message

from reasonblocks_claude_agent import SteeredClaudeClient, Steering, claude_hooks, query
from reasonblocks_claude_agent._client import Mode
from reasonblocks_testing import Turn
from tests.claude_agent.harness import raw
from tests.claude_agent.test_subagents import asking, until
from tests.claude_agent.world import (
    AGENT,
    INSIDE,
    PROMPTS,
    TASK,
    Place,
    ask,
    asked_in_turn,
    both_modes,
    by_opening,
    cli,
    everything,
    hooked,
    in_time,
    in_turn,
    look,
    looks,
    outcomes,
    place,
    result_in,
    run_in,
    told,
)
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")
SLOW: dict[str, Any] = {"scorer": lambda step: 0.7, "model_routing": {"SLOW": "strong-model"}}
"""Would switch the model before the sixth call."""
WORK = in_turn(*looks(6), *looks(1))
OWN_HEADERS = frozenset({"host", "x-claude-code-session-id"})
"""Headers that differ between two equal sessions: the provider's port, and the session's id."""


# ------------------------------------------------------------ observing


def sent(here: Place) -> list[tuple[str, dict[str, str]]]:
    """Every request, the CLI's own included."""
    return [(raw(asked), headers(asked.headers)) for asked in here.server.requests]


def headers(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name not in OWN_HEADERS}


@pytest.fixture(scope="module")
def alone() -> list[tuple[str, dict[str, str]]]:
    """The requests of a session without us."""
    with place(WORK) as here:

        async def run() -> None:
            async with ClaudeSDKClient(here.options()) as client:
                await asked_in_turn(client, PROMPTS)

        in_time(run())
        return sent(here)


@pytest.mark.parametrize("mode", ["observe", "hooks", "gateway"])
def test_an_observed_session_sends_what_one_without_us_sends(mode: Mode, alone: list[Any]) -> None:
    rb = steering(mode="steer" if mode == "observe" else "observe", **SLOW)
    with place(WORK) as here:
        steered = run_in(here, rb, mode, PROMPTS)
        assert sent(here) == alone
    assert outcomes(steered) == {"run": "success", "run.2": "success"}
    assert [entry.withheld_route for entry in steered.runs["run"].step_log] == [None] * 5 + ["SLOW"] * 2


@pytest.mark.parametrize("passed_on", [True, False])
def test_observing_hooks_answer_nothing(passed_on: bool, alone: list[Any]) -> None:
    with place(WORK) as here:

        async def run() -> Steering:
            hooks = claude_hooks(steering(**SLOW), here.options(), run_id="run", mode="observe")
            async with hooked(hooks, passed_on) as client:
                await asked_in_turn(client, PROMPTS)
            return hooks

        log = in_time(run()).step_log
        assert sent(here) == alone
    assert [bool(entry.withheld_texts) for entry in log] == [True, True]


def test_an_observed_subagent_is_told_nothing() -> None:
    outer = in_turn(asking(background=False), Turn(text="It is done."))
    with place(by_opening({INSIDE: in_turn(*looks(2, "inner "))}, outer)) as here:
        (view,) = run_in(here, steering(), "observe", **AGENT).children()
        assert [told(asked) for asked in here.server.requests] == [[]] * len(here.server.requests)
    assert [bool(entry.withheld_texts) for entry in view.step_log] == [True, True, False]


@pytest.mark.parametrize("mode", ["observe", "steer"])
def test_a_querys_mode_goes_before_the_clients(mode: Mode) -> None:
    rb = steering(mode="steer" if mode == "observe" else "observe")
    with place(in_turn(*looks(1))) as here:
        in_time(everything(query(rb, prompt=TASK, options=here.options(), mode=mode)))
        assert [len(told(asked)) for asked in here.asked()] == ([0, 0] if mode == "observe" else [1, 2])


# ------------------------------------------------------------ ending a run


def enough(run: Any) -> str | None:
    """Ends a run before its third call, but none that an earlier one has ended."""
    return "enough" if len(run.step_log) > 2 else None


def inner_only(run: Any) -> str | None:
    return enough(run) if run.run.agent_name == "inner" else None


def terminal(messages: Sequence[Message]) -> tuple[bool, str | None]:
    result = result_in(messages)
    return result.is_error, result.terminal_reason


@both_modes
def test_a_stopped_run_ends_its_turn_and_the_next_prompt_begins_another(mode: Mode) -> None:
    with place(in_turn(*looks(2), *looks(0))) as here:

        async def run() -> tuple[list[Any], Steering]:
            options = here.options()
            async with SteeredClaudeClient(steering(stop_when=enough), options, mode=mode, run_id="run") as client:
                messages = await asked_in_turn(client, (TASK, "Go on."))
            return [terminal(one) for one in messages], client.steering

        results, steered = in_time(run())
        assert len(here.asked()) == 3
    assert results == [(False, "hook_stopped"), (False, "completed")]
    assert outcomes(steered) == {"run": "stopped: enough", "run.2": "success"}
    assert [len(view.step_log) for view in steered.runs.values()] == [2, 1]


def test_a_query_ends_with_the_result_of_its_stopped_run() -> None:
    with place(in_turn(*looks(4))) as here:
        messages = in_time(everything(query(steering(stop_when=enough), prompt=TASK, options=here.options())))
        assert (terminal(messages), len(here.asked())) == ((False, "hook_stopped"), 2)


@pytest.mark.parametrize("passed_on", [True, False])
def test_hooks_alone_end_a_run(passed_on: bool) -> None:
    with place(in_turn(*looks(2), *looks(0))) as here:

        async def run() -> tuple[list[Any], Steering]:
            hooks = claude_hooks(steering(stop_when=enough), here.options(), run_id="run")
            async with hooked(hooks, passed_on) as client:
                return [terminal(one) for one in await asked_in_turn(client, (TASK, "Go on."))], hooks

        results, steered = in_time(run())
        assert len(here.asked()) == 3
    assert results == [(False, "hook_stopped"), (False, "completed")]
    assert outcomes(steered) == {"run": "stopped: enough", "run.2": "success"}


@pytest.mark.parametrize("background", [True, False])
def test_a_stopped_subagent_hands_over_what_it_has(background: bool) -> None:
    outer = in_turn(asking(background), Turn(text="It looks."), Turn(text="It is done."))
    with place(by_opening({INSIDE: in_turn(*looks(4, "inner "))}, outer)) as here:

        async def run() -> SteeredClaudeClient:
            rb = steering(stop_when=inner_only)
            async with SteeredClaudeClient(rb, here.options(**AGENT), run_id="run") as client:
                await until(client, 2 if background else 1)
            return client

        steered = in_time(run()).steering
        assert len(here.asked(INSIDE)) == 2
        assert any("inner I look a 1. time." in text for text in here.asked()[-1].texts)
    assert [view.outcome for view in steered.children()] == ["stopped: enough"]
    assert outcomes(steered) == {"run": "success"}


def test_a_stopped_run_is_not_taken_up_when_its_subagent_is_done() -> None:
    """The CLI's own prompt about it is refused; the user's next one begins another run."""
    outer = in_turn(asking(background=True), look(1), Turn(text="Something else is done."))

    def first_run(run: Any) -> str | None:
        return None if run.run.parent_run_id or run.run.run_id != "run" else enough(run)

    with place(by_opening({INSIDE: in_turn(*looks(2, "inner "))}, outer)) as here:

        async def run() -> SteeredClaudeClient:
            rb = steering(stop_when=first_run)
            async with SteeredClaudeClient(rb, here.options(**AGENT), run_id="run") as client:
                await until(client, 2)
                assert len(here.asked()) == 2
                await ask(client, "Something else.")
            return client

        steered = in_time(run()).steering
        assert len(here.asked()) == 3
    assert [view.outcome for view in steered.children("run")] == ["success"]
    assert outcomes(steered) == {"run": "stopped: enough", "run.2": "success"}


def test_the_prompt_after_an_interruption_begins_another_run_if_the_first_is_stopped() -> None:
    async def never(arguments: Any) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    def one_step(run: Any) -> str | None:
        return "enough" if len(run.step_log) > 1 else None

    with place(in_turn(look(0), *looks(0)), never) as here:

        async def run() -> SteeredClaudeClient:
            rb = steering(stop_when=one_step)
            async with SteeredClaudeClient(rb, here.options(), run_id="run") as client:
                await client.query(TASK)
                async for message in client.receive_response():
                    if type(message).__name__ == "AssistantMessage" and "ToolUse" in repr(message):
                        await client.interrupt()
                await ask(client, "Do something else.")
            return client

        steered = in_time(run()).steering
    assert outcomes(steered) == {"run": "stopped: enough", "run.2": "success"}
    assert steered.runs["run.2"].run.task == "Do something else."
