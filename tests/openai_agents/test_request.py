"""Guidance stands in a copy of one request, where its placement puts it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from agents import RunContextWrapper
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.run_config import ModelInputData
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseReasoningItem

from reasonblocks.types import FSMState, StepDecision
from reasonblocks_openai_agents import steering_of
from reasonblocks_openai_agents._request import reasoning_ids, steer_call, without_foreign_reasoning
from tests.openai_agents.world import PROMPT, every_way, fixer, in_turn, looks, place, said, whole_and_streamed
from tests.steered import steering

# ------------------------------------------------------------ changes of a request


ITEMS: list[Any] = [{"role": "user", "content": "Fix it."}]


def decision(*, guidance: str = "", rules: str = "", tail: bool = False) -> StepDecision:
    return StepDecision(
        step=1,
        fsm_state=FSMState.NORMAL,
        placement="tail" if tail else "system",
        guidance=guidance,
        standing_rules=rules,
    )


@pytest.mark.parametrize(
    ("instructions", "rules", "guidance", "said"),
    [
        ("You fix bugs.", "", "", "You fix bugs."),
        (None, "", "", None),
        ("", "", "", ""),
        ("You fix bugs.", "", "Read it.", "You fix bugs.\n\nRead it."),
        (None, "", "Read it.", "Read it."),
        ("You fix bugs.", "Rules.", "", "You fix bugs.\n\nRules."),
        ("You fix bugs.", "Rules.", "Read it.", "You fix bugs.\n\nRules.\n\nRead it."),
    ],
)
def test_instructions_come_first_then_rules_then_guidance(
    instructions: str | None, rules: str, guidance: str, said: str | None
) -> None:
    given = decision(rules=rules, guidance=guidance)
    assert steer_call(instructions, ITEMS, given) == (said, ITEMS)


def test_the_tail_is_behind_the_text_of_the_last_message() -> None:
    given = decision(rules="Rules.", guidance="Read it.", tail=True)
    said = steer_call("You fix bugs.", ITEMS, given)
    assert said == ("You fix bugs.\n\nRules.", [{"role": "user", "content": "Fix it.\n\nRead it."}])
    assert ITEMS == [{"role": "user", "content": "Fix it."}]


def test_without_guidance_the_items_are_the_very_same() -> None:
    assert steer_call("You fix bugs.", ITEMS, decision(tail=True))[1] is ITEMS


# ------------------------------------------------------------ reasoning that another model signed


def reasoning(id: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": id, "summary": []}


def message(id: str) -> dict[str, Any]:
    return {"type": "message", "id": id, "role": "assistant", "content": []}


def call(id: str) -> dict[str, Any]:
    return {"type": "function_call", "id": id, "call_id": f"c{id}", "name": "look", "arguments": "{}"}


def output(id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{id}", "output": ""}


def without_id(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in {"id", "provider_data"}}


def unknown(item: dict[str, Any]) -> dict[str, Any]:
    """As the SDK marks what no server knows."""
    return {**item, "id": FAKE_RESPONSES_ID, "provider_data": {"model": ""}}


def foreign(id: str) -> bool:
    return id.startswith("x")


def test_foreign_reasoning_goes_and_what_followed_it_in_its_answer_loses_its_id() -> None:
    items = [*ITEMS, reasoning("x"), message("m"), call("f"), output("f")]
    assert without_foreign_reasoning(items, foreign) == [
        *ITEMS,
        unknown(message("m")),
        unknown(call("f")),
        output("f"),
    ]


def test_what_follows_other_reasoning_keeps_its_id() -> None:
    items = [reasoning("x"), call("f"), output("f"), reasoning("own"), call("g"), output("g"), message("m")]
    assert without_foreign_reasoning(items, foreign) == [unknown(call("f")), *items[2:]]


def test_an_answer_that_thinks_twice_loses_what_is_foreign() -> None:
    items = [reasoning("x"), message("m"), reasoning("own"), call("f")]
    assert without_foreign_reasoning(items, foreign) == [unknown(message("m")), *items[2:]]


def test_items_without_foreign_reasoning_are_the_very_same() -> None:
    items = [*ITEMS, reasoning("own"), message("m")]
    assert without_foreign_reasoning(items, foreign) is items


PARTS = st.one_of(
    st.sampled_from([reasoning("x"), reasoning("x2"), reasoning("own")]),
    st.sampled_from([message("m"), call("f"), output("f"), *ITEMS]),
)


@given(st.lists(PARTS, max_size=12))
def test_nothing_but_reasoning_and_ids_is_ever_lost(items: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(items)
    kept = without_foreign_reasoning(items, foreign)
    assert items == before
    assert [without_id(one) for one in kept] == [
        without_id(one) for one in items if one.get("type") != "reasoning" or not foreign(one["id"])
    ]


def test_reasoning_whose_author_the_sdk_knows_is_left_to_it() -> None:
    items = [{**reasoning("x"), "provider_data": {"model": "own"}}, message("m")]
    assert without_foreign_reasoning(items, foreign) is items
    assert reasoning_ids(items) == []


def test_the_ids_of_reasoning_are_those_of_an_answers_reasoning_items() -> None:
    answer = [ResponseReasoningItem(id="r", type="reasoning", summary=[]), reasoning("s"), message("m")]
    assert reasoning_ids(answer) == ["r", "s"]


# ------------------------------------------------------------ placement


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
def test_a_run_has_a_placement_of_its_own(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        result = here.run(steering(), fixer(), placement="system")
        assert here.requests[0].system.startswith(f"{PROMPT}\n\n[REASONBLOCKS]")
        assert [entry.placement for entry in steering_of(result).step_log] == ["system", "system"]


@whole_and_streamed
def test_a_screenshot_holds_no_guidance_so_that_it_is_in_the_instructions(way: str) -> None:
    shot: Any = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}

    def replaced(data: Any) -> Any:
        return ModelInputData(input=[*data.model_data.input, shot], instructions=data.model_data.instructions)

    with place(in_turn(said()), way) as here:
        config = here.config(call_model_input_filter=replaced)
        run = steering_of(here.run(steering(), fixer(), run_config=config))
        (asked,) = here.requests
        assert asked.body["input"][-1] == shot
        assert "[REASONBLOCKS]" in asked.system
    assert [entry.placement for entry in run.step_log] == ["system"]
