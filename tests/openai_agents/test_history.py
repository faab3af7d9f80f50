"""What stays after a run, in results and sessions, holds nothing of ours; the next run has its own question."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import RunConfig, SQLiteSession

from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import (
    TASK,
    Judged,
    Place,
    every_way,
    fixer,
    in_turn,
    looks,
    one_by_one,
    place,
    said,
    steering,
    whole_and_streamed,
)

NEXT = "And what of the docs?"
PLACEMENTS = pytest.mark.parametrize("placement", ["system", "tail"])


@contextmanager
def session(where: str | Path = ":memory:") -> Iterator[SQLiteSession]:
    kept = SQLiteSession("conversation", where)
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


@whole_and_streamed
def test_a_session_in_a_file_keeps_nothing_of_ours(tmp_path: Path, way: str) -> None:
    file = tmp_path / "agent.db"
    with place(in_turn(*looks(3)), way) as here, session(file) as kept:
        here.run(steering(placement="tail"), fixer(), session=kept)
    with sqlite3.connect(file) as database:
        stored = database.execute("select message_data from agent_messages").fetchall()
    database.close()
    assert len(stored) > 6
    assert "REASONBLOCKS" not in repr(stored)


@every_way
def test_the_task_of_a_sessions_second_run_is_its_own_question(way: str) -> None:
    rb = steering()
    with place(one_by_one(*looks(2), *looks(2, "again")), way) as here, session() as kept:
        first = steering_of(here.run(rb, fixer(), session=kept))
        second = steering_of(here.run(rb, fixer(), NEXT, session=kept))
    assert [run.session.run.task for run in (first, second)] == [TASK, NEXT]
    assert first.run_id != second.run_id
    assert [run.session.run.session_id for run in (first, second)] == ["conversation"] * 2


@every_way
def test_a_sessions_second_run_begins_anew(way: str) -> None:
    rb = steering()
    with place(one_by_one(*looks(2), *looks(2, "again")), way) as here, session() as kept:
        first = steering_of(here.run(rb, fixer(), session=kept))
        second = steering_of(here.run(rb, fixer(), NEXT, session=kept))
        assert [asked.texts[0] for asked in here.requests] == [TASK] * 6
        assert here.guided == [True, True, False] * 2
    for run in (first, second):
        assert [entry.difficulty for entry in run.step_log] == [None, 0.4, 0.4]


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
