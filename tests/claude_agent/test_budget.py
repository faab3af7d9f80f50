"""The CLI's `max_turns` is told in calls, to the one after which the CLI ends the run."""

from __future__ import annotations

import asyncio

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from reasonblocks_claude_agent import SteeredClaudeClient
from tests.budget import LANDING, LAST, auto, lines, numbered
from tests.claude_agent.replay import Replay, turn
from tests.claude_agent.world import ask, cli, in_turn, looks, outcomes, place, run_in

__all__ = ["cli"]
with_cli = pytest.mark.usefixtures("cli")


def played(replay: Replay, prompts: int = 1, most: int | None = 12) -> list[list[str]]:
    """The lines of each run of a session that is played back."""

    async def run() -> list[list[str]]:
        options = ClaudeAgentOptions(max_turns=most)
        async with SteeredClaudeClient(auto(), options, transport=replay) as client:
            for _ in range(prompts):
                await ask(client)
        return [lines(view.step_log) for view in client.steering.runs.values()]

    return asyncio.run(run())


@with_cli
def test_max_turns_are_told_in_calls() -> None:
    with place(in_turn(*looks(30))) as here:
        steered = run_in(here, auto(), "hooks", max_turns=8)
        assert len(here.asked()) == 8
    assert numbered(steered.step_log) == {4: "Budget: at most 4 calls are left.", 5: LANDING, 7: LAST}
    assert outcomes(steered) == {"run": "failure: error_max_turns"}


@with_cli
def test_the_answer_of_the_last_call_comes_through() -> None:
    with place(in_turn(*looks(2))) as here:
        steered = run_in(here, auto(), "gateway", max_turns=3)
        assert LAST in "".join(here.asked()[-1].texts)
    assert (lines(steered.step_log)[-1], outcomes(steered)) == (LAST, {"run": "success"})


def test_each_prompt_has_all_turns() -> None:
    assert played(Replay(turn(2), turn(2)), prompts=2) == [[""] * 3] * 2


def test_without_a_limit_nothing_is_told() -> None:
    assert played(Replay(turn(9)), most=None) == [[""] * 10]
