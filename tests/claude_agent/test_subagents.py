"""Subagents of the real CLI are runs of their own, in the foreground and in the background."""

from __future__ import annotations

import pytest
from claude_agent_sdk import ResultMessage

from reasonblocks_claude_agent import SteeredClaudeClient
from reasonblocks_testing import Turn, tool_call
from tests.claude_agent.world import (
    AGENT,
    INSIDE,
    TASK,
    Place,
    by_opening,
    cli,
    in_time,
    in_turn,
    look,
    looks,
    place,
    session,
    told,
)
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")


def asking(background: bool) -> Turn:
    asked_for = {"description": "look", "prompt": INSIDE, "subagent_type": "inner", "run_in_background": background}
    return Turn(text="Somebody else is to look.", tool_calls=(tool_call("t1", "Task", asked_for),))


async def until(client: SteeredClaudeClient, results: int, prompts: tuple[str, ...] = (TASK,)) -> None:
    """So many results are in; a prompt is sent at the beginning, and after each of the first ones."""
    waiting = list(prompts)
    await client.query(waiting.pop(0))
    async for message in client.receive_messages():
        results -= isinstance(message, ResultMessage)
        if not results:
            return
        if isinstance(message, ResultMessage) and waiting:
            await client.query(waiting.pop(0))


def steered(here: Place, results: int = 1, prompts: tuple[str, ...] = (TASK,)) -> SteeredClaudeClient:
    async def run() -> SteeredClaudeClient:
        async with session(here, steering(), **AGENT) as client:
            await until(client, results, prompts)
        return client

    return in_time(run())


@pytest.mark.parametrize("background", [True, False])
def test_a_subagent_is_a_run_within_the_agents(background: bool) -> None:
    outer = in_turn(asking(background), Turn(text="It looks."), Turn(text="It is done."))
    with place(by_opening({INSIDE: in_turn(*looks(2, "inner "))}, outer)) as here:
        (view,) = steered(here, 2 if background else 1).steering.children()
    assert (view.run.parent_run_id, view.run.parent_call_id, view.run.agent_name) == ("run", "t1", "inner")
    assert (view.outcome, len(view.step_log)) == ("success", 3)


@pytest.mark.parametrize("background", [True, False])
def test_a_subagent_is_told_what_is_its_own(background: bool) -> None:
    outer = in_turn(asking(background), Turn(text="It looks."), Turn(text="It is done."))
    with place(by_opening({INSIDE: in_turn(*looks(2, "inner "))}, outer)) as here:
        steered(here, 2 if background else 1)
        inside = [" ".join(told(asked)) for asked in here.asked(INSIDE)]
    assert [("Check before" in said, said.count("Step 0 looked")) for said in inside] == [
        (True, 0),
        (True, 1),
        (True, 1),
    ]


def test_the_turn_that_a_background_tasks_end_begins_goes_on_with_the_run_of_the_task() -> None:
    outer = in_turn(asking(background=True), Turn(text="It looks."), look(7), Turn(text="It is done."))
    with place(by_opening({INSIDE: in_turn(*looks(1, "inner "))}, outer)) as here:
        client = steered(here, 2)
        assert {run_id: len(view.step_log) for run_id, view in client.steering.runs.items()} == {"run": 4}
        assert [len(told(asked)) for asked in here.asked()] == [1, 2, 2, 2]
    assert client.steering.runs["run"].outcome == "success"
