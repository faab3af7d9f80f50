"""What a decision changes in a request is said once, and in a copy."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from agents.models.fake_id import FAKE_RESPONSES_ID
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseReasoningItem

from reasonblocks.types import FSMState, StepDecision
from reasonblocks_openai_agents._request import reasoning_ids, steered, without_foreign_reasoning

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
    assert steered(instructions, ITEMS, given, tail=False) == (said, ITEMS)


def test_the_tail_is_one_more_message() -> None:
    given = decision(rules="Rules.", guidance="Read it.", tail=True)
    said = steered("You fix bugs.", ITEMS, given, tail=True)
    assert said == ("You fix bugs.\n\nRules.", [*ITEMS, {"role": "user", "content": "Read it."}])
    assert ITEMS == [{"role": "user", "content": "Fix it."}]


def test_without_guidance_the_items_are_the_very_same() -> None:
    assert steered("You fix bugs.", ITEMS, decision(tail=True), tail=True)[1] is ITEMS


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
