"""Trouble, from its beginning on: the agent is told, in time, of the right thing."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.core.monitors.trajectories import STUCK, Played, Told, play

each = pytest.mark.parametrize("name", STUCK)


@cache
def played(name: str) -> Played:
    return play(STUCK[name].task, STUCK[name].steps)


def first_told(name: str) -> Told | None:
    return next(iter(played(name).told), None)


@each
def test_trouble_is_told_within_three_steps_of_being_plain(name: str) -> None:
    first = first_told(name)
    assert first is not None, "nothing was said"
    assert first.step <= STUCK[name].latest, f"said after step {first.step}: {first.text}"


@each
def test_the_work_before_the_trouble_is_told_nothing(name: str) -> None:
    told = played(name).told
    assert [(one.step, one.text) for one in told if one.step < len(STUCK[name].before)] == []


@each
def test_the_first_text_is_of_the_right_failure_type(name: str) -> None:
    told = played(name).told[:1]
    assert [(one.failure_type, one.text) for one in told if one.failure_type not in STUCK[name].types] == []


@each
def test_no_text_names_a_step_by_its_number(name: str) -> None:
    assert [one.text for one in played(name).told if re.search(r"\b[Ss]teps? \d", one.text)] == []


@each
def test_a_text_quotes_at_most_one_line_of_what_a_tool_gave_back(name: str) -> None:
    lines = [line for step in STUCK[name].steps for result in step.tool_results for line in result.output.split("\n")]
    for one in played(name).told:
        assert len({line for line in lines if len(line) > 60 and line in one.text}) <= 1


@each
def test_no_text_gives_an_order_that_a_model_distrusts(name: str) -> None:
    orders = re.compile(r"\bmust\b|override|do not mention", re.IGNORECASE)
    assert [one.text for one in played(name).told if orders.search(one.text)] == []


@each
def test_no_two_texts_of_a_run_are_equal(name: str) -> None:
    texts = [one.text for one in played(name).told]
    assert len(set(texts)) == len(texts)


@each
def test_a_run_cut_in_two_decides_as_if_it_had_never_stopped(name: str) -> None:
    trouble = STUCK[name]
    cut = len(trouble.before) + trouble.plain_at
    again = play(trouble.task, trouble.steps, cuts={cut - 1, cut})
    assert again.decisions == played(name).decisions
