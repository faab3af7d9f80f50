"""Trouble, from its beginning on: the agent is told, in time, of the right thing, in our own words."""

from __future__ import annotations

import re

import pytest

from tests.core.monitors import stuck_claims, stuck_disguised, stuck_languages, stuck_loops, stuck_wandering
from tests.core.monitors.trajectories import Played, Stuck, Told, play, quoted, steps_named

STUCK = {
    **stuck_loops.LOOPS,
    **stuck_disguised.DISGUISED,
    **stuck_languages.LANGUAGES,
    **stuck_claims.CLAIMS,
    **stuck_wandering.WANDERING,
}


def each(test: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "trouble",
        [pytest.param(one, id=name) for name, one in STUCK.items()],
    )


def played(trouble: Stuck) -> Played:
    return play(trouble.task, trouble.steps)


def first_told(trouble: Stuck) -> Told | None:
    return next(iter(played(trouble).told), None)


@each("in time")
def test_trouble_is_told_within_three_steps_of_being_plain(trouble: Stuck) -> None:
    first = first_told(trouble)
    assert first is not None, "nothing was said"
    assert first.step <= trouble.latest, f"said after step {first.step}: {first.text}"


@each("not before")
def test_the_work_before_the_trouble_is_told_nothing(trouble: Stuck) -> None:
    told = played(trouble).told
    assert [(one.step, one.text) for one in told if one.step < len(trouble.before)] == []


@each("the right type")
def test_the_first_text_is_of_the_right_failure_type(trouble: Stuck) -> None:
    told = played(trouble).told[:1]
    assert [(one.failure_type, one.text) for one in told if one.failure_type not in trouble.types] == []


@each("steps named")
def test_every_text_names_completed_steps(trouble: Stuck) -> None:
    for one in played(trouble).told:
        named = steps_named(one.text)
        assert named, one.text
        assert max(named) <= one.step, one.text


@each("nothing quoted")
def test_no_text_quotes_what_a_tool_gave_back(trouble: Stuck) -> None:
    found = [words for one in played(trouble).told for step in trouble.steps for words in quoted(one.text, step)]
    assert found == []


@each("no orders")
def test_no_text_gives_an_order_that_a_model_distrusts(trouble: Stuck) -> None:
    orders = re.compile(r"\bmust\b|override|do not mention", re.IGNORECASE)
    assert [one.text for one in played(trouble).told if orders.search(one.text)] == []


@each("no two equal")
def test_no_two_texts_of_a_run_are_equal(trouble: Stuck) -> None:
    texts = [one.text for one in played(trouble).told]
    assert len(set(texts)) == len(texts)


@each("cut in two")
def test_a_run_cut_in_two_decides_as_if_it_had_never_stopped(trouble: Stuck) -> None:
    cut = len(trouble.before) + trouble.plain_at
    again = play(trouble.task, trouble.steps, cuts={cut - 1, cut})
    assert again.decisions == played(trouble).decisions
