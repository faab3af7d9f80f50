"""What stays after a run, in results and sessions, holds nothing of ours; the next run has its own question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from agents import Agent, RunConfig, SessionABC, SQLiteSession
from agents.items import TResponseInputItem

from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import (
    PROMPT,
    TASK,
    Judged,
    Place,
    by_model,
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
from tests.steered import steering, unguided

NEXT = "And what of the docs?"
PLACEMENTS = pytest.mark.parametrize("placement", ["system", "tail"])


@contextmanager
def session() -> Iterator[SQLiteSession]:
    kept = SQLiteSession("conversation")
    try:
        yield kept
    finally:
        kept.close()


@PLACEMENTS
@every_way
def test_a_result_is_the_one_without_steering(placement: str, way: str) -> None:
    kept: list[Any] = []
    for run in (steered, plainly):
        with place(in_turn(*looks(3)), way) as here:
            kept.append(without_ids(run(here, placement).to_input_list()))
    assert kept[0] == kept[1]


def steered(here: Place, placement: str) -> Any:
    return here.run(steering(placement=placement), fixer())


def plainly(here: Place, placement: str) -> Any:
    return here.plain(fixer())


def without_ids(items: list[Any]) -> list[Any]:
    return [{key: value for key, value in item.items() if key not in ("id", "provider_data")} for item in items]


@PLACEMENTS
@every_way
def test_a_session_keeps_nothing_of_ours(placement: str, way: str) -> None:
    with place(in_turn(*looks(3)), way) as here, session() as kept:
        here.run(steering(placement=placement), fixer(), session=kept)
        items = here.until(kept.get_items())
        assert len(items) > 6
        assert "REASONBLOCKS" not in repr(items)


@every_way
def test_a_sessions_second_run_begins_anew_with_its_own_question_as_its_task(way: str) -> None:
    rb = steering()
    with place(one_by_one(*looks(2), *looks(2, "again")), way) as here, session() as kept:
        first = steering_of(here.run(rb, fixer(), session=kept))
        second = steering_of(here.run(rb, fixer(), NEXT, session=kept))
        assert [unguided(asked.texts[0]) for asked in here.requests] == [TASK] * 6
        assert here.guided == [True, True, False] * 2
    for run in (first, second):
        assert [entry.difficulty for entry in run.step_log] == [None, 0.4, 0.4]
    assert [run.session.run.task for run in (first, second)] == [TASK, NEXT]
    assert first.run_id != second.run_id
    assert [run.session.run.session_id for run in (first, second)] == ["conversation"] * 2


@whole_and_streamed
def test_the_first_step_of_a_second_run_has_no_results_of_the_first(way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    with place(one_by_one(*looks(1), *looks(1, "again")), way) as here, session() as kept:
        here.run(rb, fixer(), session=kept)
        here.run(rb, fixer(), NEXT, session=kept)
    assert [[result.call_id for result in step.tool_results] for step in judged.steps] == [["c0"], [], ["cagain0"], []]


@whole_and_streamed
def test_a_conversation_that_goes_on_by_its_items_has_the_new_question_as_task(way: str) -> None:
    rb = steering()
    with place(one_by_one(*looks(1), *looks(1, "again")), way) as here:
        before = here.run(rb, fixer()).to_input_list()
        after = here.run(rb, fixer(), [*before, {"role": "user", "content": NEXT}])
        assert steering_of(after).session.run.task == NEXT


def only_the_newest(history: list[Any], new: list[Any]) -> list[Any]:
    return [*history[-2:], *new]


@whole_and_streamed
@pytest.mark.parametrize("callback", [None, only_the_newest])
def test_the_callers_session_callback_sees_nothing_of_ours(callback: Callable[..., Any] | None, way: str) -> None:
    seen: list[Any] = []

    def noting(history: list[Any], new: list[Any]) -> list[Any]:
        seen.extend([*history, *new])
        return callback(history, new) if callback else [*history, *new]

    with place(one_by_one(*looks(1), said()), way) as here, session() as kept:
        config: RunConfig = here.config(session_input_callback=noting)
        here.run(steering(placement="tail"), fixer(), session=kept, run_config=config)
        result = here.run(steering(placement="tail"), fixer(), NEXT, session=kept, run_config=config)
        assert steering_of(result).session.run.task == NEXT
    assert "REASONBLOCKS" not in repr(seen)


@whole_and_streamed
def test_the_callers_list_is_not_changed(way: str) -> None:
    asked: list[Any] = [{"role": "user", "content": TASK}]
    with place(in_turn(*looks(1)), way) as here:
        here.run(steering(placement="tail"), fixer(), asked)
    assert asked == [{"role": "user", "content": TASK}]


# ------------------------------------------------------------ sessions that do not know their id yet


class Unborn(SessionABC):
    """Like the SDK's own of a conversation, whose id comes with its first request."""

    session_settings = None

    def __init__(self) -> None:
        self.items: list[TResponseInputItem] = []

    @property
    def session_id(self) -> str:  # type: ignore[override]  # as in the SDK's own
        raise ValueError("Session ID not yet available.")

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return list(self.items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        self.items += items

    async def pop_item(self) -> TResponseInputItem | None:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


@every_way
def test_a_session_without_an_id_is_steered(way: str) -> None:
    with place(in_turn(*looks(1)), way) as at:
        result = at.run(steering(), fixer(), session=Unborn())
        assert steering_of(result).outcome == "success"


# ------------------------------------------------------------ conversations that the server keeps


RESPONSES = pytest.mark.parametrize("way", ["run/responses", "run_sync/responses", "run_streamed/responses"])
CHAINS = pytest.mark.parametrize("chain", [{"conversation_id": "conv"}, {"auto_previous_response_id": True}])
"""Chat Completions keep nothing."""


@CHAINS
@RESPONSES
def test_requests_hold_what_is_new_alone(chain: dict[str, Any], way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        result = here.run(steering(), fixer(), **chain)
        assert [asked.texts for asked in here.requests] == [(TASK,), ("f0 is empty",), ("f1 is empty",)]
        assert steering_of(result).outcome == "success"


@CHAINS
@RESPONSES
def test_steps_have_their_thought_and_their_results(chain: dict[str, Any], way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    turns = (call("look", "c0", "I look.", path="a"), call("crash", "c1", "I try.", path="b"), said())
    with place(in_turn(*turns), way) as here:
        here.run(rb, fixer(tools=[look, crash]), **chain)
    assert judged.thoughts == ["I look.", "I try.", "All seen."]
    assert [[(one.name, one.is_error) for one in step.tool_results] for step in judged.steps] == [
        [("look", None)],
        [("crash", True)],
        [],
    ]


@CHAINS
@RESPONSES
@pytest.mark.parametrize("options", [{}, {"placement": "tail"}, {"placement": "system"}])
def test_guidance_stands_in_the_instructions_whatever_the_client_says(
    chain: dict[str, Any], way: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with place(in_turn(*looks(4)), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        result = here.run(steering(**options), fixer(), **chain)
        assert ["[REASONBLOCKS]" in asked.system for asked in here.requests] == [True, True, False, False, True]
        assert all(asked.system.startswith(PROMPT) for asked in here.requests)
        assert {entry.placement for entry in steering_of(result).step_log} == {"system"}
    said = [message for message in caplog.messages if "placement='system'" in message]
    assert len(said) == (0 if options.get("placement") == "system" else 1)


@CHAINS
@RESPONSES
def test_a_run_that_asks_for_the_tail_itself_is_refused(chain: dict[str, Any], way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        with pytest.raises(ConfigError, match="placement"):
            here.run(steering(), fixer(), placement="tail", **chain)
        assert here.requests == []


@RESPONSES
def test_a_run_may_go_on_from_a_response(way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    with place(in_turn(said(), *looks(1)), way) as here:
        first = here.run(rb, fixer())
        judged.steps.clear()
        second = here.run(rb, fixer(), "And now?", previous_response_id=first.last_response_id)
        assert [asked.texts for asked in here.requests[1:]] == [("And now?",), ("f0 is empty",)]
        assert steering_of(second).session.run.task == "And now?"
    assert judged.thoughts == ["I look at file 0.", "All seen."]


def test_a_conversation_is_the_session_of_its_runs() -> None:
    with place(in_turn(*looks(1))) as here:
        result = here.run(steering(), fixer(), conversation_id="conv")
        assert steering_of(result).session.run.session_id == "conv"


@CHAINS
@RESPONSES
def test_a_handoff_stays_in_the_servers_conversation(chain: dict[str, Any], way: str) -> None:
    judged = Judged()
    rb = steering(scorer=judged)
    agent = fixer(handoffs=[fixer(name="second", model="other")])
    with place(in_turn(call("transfer_to_second", "c0", "You go on."), *looks(2)[1:]), way) as here:
        run = steering_of(here.run(rb, agent, **chain))
        assert [entry.model_id for entry in run.step_log] == ["own", "other", "other"]
    assert judged.thoughts == ["You go on.", "I look at file 1.", "All seen."]


@CHAINS
@RESPONSES
def test_an_agent_of_a_tool_is_guided_in_its_instructions(chain: dict[str, Any], way: str) -> None:
    inner = fixer(name="inner", model="inner")
    agent: Agent[Any] = fixer(tools=[inner.as_tool("ask", "Asks.")])
    with place(by_model(own=[call("ask", "a0", input="Look."), said()], inner=looks(1)), way) as here:
        (child,) = steering_of(here.run(steering(placement="tail"), agent, **chain)).children
        assert child.outcome == "success"
        assert {entry.placement for entry in child.step_log} == {"system"}
        assert all("[REASONBLOCKS]" in asked.system for asked in here.requests if asked.model == "inner")
