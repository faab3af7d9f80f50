"""The CLI's `max_turns` is told in calls, to the one after which the CLI ends the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from reasonblocks import Budget
from reasonblocks_claude_agent import SteeredClaudeClient
from reasonblocks_claude_agent._client import Mode
from tests.budget import LANDING, LAST, auto, lines, numbered
from tests.claude_agent.replay import Replay, turn
from tests.claude_agent.world import ask, cli, in_turn, look, looks, outcomes, place, run_in

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


@with_cli
@pytest.mark.parametrize("mode", ["hooks", "gateway"])
def test_a_tool_that_is_used_up_is_refused(mode: Mode) -> None:
    ran = []

    async def give(arguments: Any) -> dict[str, Any]:
        ran.append(arguments["at"])
        return {"content": [{"type": "text", "text": "empty"}]}

    with place(in_turn(look(0), look(1, 2, 3), look(4), *looks(5)[5:]), give) as here:
        steered = run_in(here, auto(budget=Budget(tools={"look": 3})), mode)
        texts = "".join(here.asked()[-1].texts)
    used_up = "look may not be called any more: its 3 calls are used up."
    assert (ran, texts.count(used_up) >= 2) == ([0, 1, 2], True)
    assert lines(steered.step_log) == ["", "", used_up, ""]
    assert outcomes(steered) == {"run": "success"}


def test_each_prompt_has_all_turns() -> None:
    assert played(Replay(turn(2), turn(2)), prompts=2) == [[""] * 3] * 2


def test_without_a_limit_nothing_is_told() -> None:
    assert played(Replay(turn(9)), most=None) == [[""] * 10]
