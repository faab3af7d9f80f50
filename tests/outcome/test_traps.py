"""The families with a trap: agents get stuck in it, and some of those states can still be won."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from _outcome.backend import Backend, Query
from _outcome.environment import Call
from _outcome.policies import RandomBackend, outcome, play, reference_wins
from _outcome.tasks import FAMILIES

from tests.outcome.stuck import StubbornBackend, measured

TRAPS = ("pasted", "pages", "roots")
SEEDS = range(60)
AGENTS: dict[str, Callable[[], Backend]] = {
    "stubborn": lambda: StubbornBackend(1, repeats=0.8),
    "to and fro": lambda: RandomBackend(1, repeats=0.8),
}


@pytest.mark.parametrize("family", TRAPS)
def test_the_reference_policy_wins_every_seed_from_the_start(family: str) -> None:
    lost = []
    for seed in range(200):
        environment = FAMILIES[family]()
        environment.reset(seed)
        if not reference_wins(environment, environment.max_steps) or not environment.done:
            lost.append(seed)
    assert not lost


@pytest.mark.parametrize("family", TRAPS)
def test_random_calls_win_less_than_a_quarter(family: str) -> None:
    won = 0
    for seed in range(200):
        environment = FAMILIES[family]()
        play(environment, environment.reset(seed), RandomBackend(1), seed, environment.max_steps)
        won += environment.success()
    assert won < 0.25 * 200


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("family", TRAPS)
def test_many_runs_get_stuck_and_some_of_those_can_be_won(family: str, agent: str) -> None:
    found = measured(family, AGENTS[agent](), SEEDS)
    assert found.stuck >= 0.1 * found.runs
    assert 0.2 <= found.winnable / found.stuck <= 0.6
    assert found.won < 0.25 * found.runs


def test_a_stubborn_agent_repeats_the_call_that_was_refused() -> None:
    pasted = FAMILIES["pasted"]()
    refused = Call("edit", {"old": "roof", "new": "floor"})
    task = pasted.reset(0)
    function = {"name": refused.name, "arguments": '{"old": "roof", "new": "floor"}'}
    messages: list[Mapping[str, Any]] = [
        {"role": "user", "content": task},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": function}]},
        {"role": "tool", "tool_call_id": "a", "content": outcome(pasted, refused)},
    ]
    query = Query(messages=messages, tools=pasted.tools, lane=0, seed=0)
    assert StubbornBackend(1, repeats=1.0).next_call(query) == refused
    assert StubbornBackend(1, repeats=0.0).next_call(query) != refused
