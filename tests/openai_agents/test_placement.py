"""Guidance stands where its placement says, in one request, and in no history."""

from __future__ import annotations

from typing import Any

import pytest
from agents import RunContextWrapper

from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import (
    PROMPT,
    every_way,
    fixer,
    in_turn,
    looks,
    place,
    steering,
    whole_and_streamed,
)

SPEAKS = [True, True, False, False, True]
"""Of five calls: the rules, the first text, and the next one three steps later."""


@every_way
def test_guidance_is_appended_to_the_instructions_of_its_call(way: str) -> None:
    with place(in_turn(*looks(4)), way) as here:
        here.run(steering(placement="system"), fixer())
        assert ["[REASONBLOCKS]" in asked.system for asked in here.requests] == SPEAKS
        assert all(asked.system.startswith(PROMPT) for asked in here.requests)
        assert "Step 0 looked again" in here.requests[1].system


@every_way
def test_guidance_stands_at_the_end_of_the_input_unless_something_else_is_asked_for(way: str) -> None:
    with place(in_turn(*looks(4)), way) as here:
        here.run(steering(), fixer())
        assert {asked.system for asked in here.requests} == {PROMPT}
        assert ["[REASONBLOCKS]" in asked.texts[-1] for asked in here.requests] == SPEAKS
        assert here.guided == SPEAKS


@every_way
def test_the_history_holds_no_guidance(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        result = here.run(steering(placement="tail"), fixer())
        assert "REASONBLOCKS" not in repr(result.to_input_list())
        assert "REASONBLOCKS" not in repr(result.new_items)


@every_way
def test_an_agent_without_instructions_gets_the_guidance_alone(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        here.run(steering(placement="system"), fixer(instructions=None))
        assert here.requests[0].system.startswith("[REASONBLOCKS]")


@every_way
def test_a_call_without_guidance_goes_out_as_it_was(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        here.run(steering(), fixer(instructions=None))
        steered = here.requests[2].body
    with place(in_turn(*looks(2)), way) as here:
        here.plain(fixer(instructions=None))
        assert {key: here.requests[2].body[key] for key in steered if key != "input"} == {
            key: steered[key] for key in steered if key != "input"
        }


@whole_and_streamed
def test_dynamic_instructions_are_made_for_each_call(way: str) -> None:
    calls: list[str] = []

    def instructions(context: RunContextWrapper[Any], agent: object) -> str:
        calls.append(f"Prompt {len(calls)}.")
        return calls[-1]

    with place(in_turn(*looks(2)), way) as here:
        here.run(steering(), fixer(instructions=instructions))
        assert [asked.system.split("\n")[0] for asked in here.requests] == ["Prompt 0.", "Prompt 1.", "Prompt 2."]


@whole_and_streamed
def test_standing_rules_of_the_run_stand_in_every_call(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        here.run(steering(standing_rules="run"), fixer())
        assert all("Check before you say" in asked.system for asked in here.requests)


@whole_and_streamed
def test_a_run_has_a_placement_of_its_own(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        result = here.run(steering(), fixer(), placement="system")
        assert here.requests[0].system.startswith(f"{PROMPT}\n\n[REASONBLOCKS]")
        assert [entry.placement for entry in steering_of(result).step_log] == ["system", "system"]


def test_a_wrong_placement_is_refused_before_any_request() -> None:
    with place(in_turn(*looks(1))) as here:
        with pytest.raises(ConfigError, match="placement"):
            here.run(steering(), fixer(), placement="context")
        assert here.requests == []


def test_an_option_that_nobody_knows_is_refused_with_the_nearest_one() -> None:
    with place(in_turn(*looks(1))) as here:
        with pytest.raises(ConfigError, match="run_id"):
            here.run(steering(), fixer(), runid="x")
        assert here.requests == []
