"""Patience: when a rung is reached, how a run counts it, and which rung an agent's own runs choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.patience import DEFAULT, RUNGS, Rung, Stretches, counted, is_reached, learned, rung_of

STEPS = st.text(alphabet=".AB", min_size=1, max_size=60)


def reached_at(letters: str, rung: Rung) -> list[int]:
    """Return the steps at which a rung is reached: a dead step with enough dead ones among the newest."""
    dead = [letter != "." for letter in letters]
    return [at for at in range(len(dead)) if dead[at] and sum(dead[max(0, at - rung.of + 1) : at + 1]) >= rung.dead]


def counts_of(letters: str, rung: Rung) -> tuple[int, int]:
    """Return how often it is reached, three steps apart and with four steps to come, and how often that is needless."""
    counts, last = [], -9
    for at in reached_at(letters, rung):
        if at - last >= 3:
            last = at
            counts.append(at)
    judged = [at for at in counts if at + 4 < len(letters)]
    needless = [at for at in judged if sum(letter != "." for letter in letters[at + 1 : at + 5]) <= 1]
    return len(judged), len(needless)


@given(STEPS)
def test_a_rung_is_reached_by_a_dead_step_with_enough_dead_ones(letters: str) -> None:
    for rung in RUNGS:
        now = [at for at in range(len(letters)) if is_reached(letters[: at + 1], rung)]
        assert now == reached_at(letters, rung)


@given(STEPS)
def test_a_run_counts_each_rung_step_by_step(letters: str) -> None:
    stretches = Stretches()
    for letter in letters:
        stretches = counted(stretches, dead=letter != ".")
    assert [(count.reached, count.needless) for count in stretches.counts] == [
        counts_of(letters, rung) for rung in RUNGS
    ]


def test_too_few_counts_leave_the_default() -> None:
    assert learned([(7, 7)] * 7) == DEFAULT
    assert learned([]) == DEFAULT


def test_the_least_patient_rung_within_the_goal_is_chosen() -> None:
    assert learned([(50, 5)] * 7) == RUNGS[0]
    assert learned([(50, 20), (40, 16), (40, 4), *[(0, 0)] * 4]) == RUNGS[2]


def test_an_agent_that_always_gets_out_by_itself_is_left_alone() -> None:
    assert learned([(50, 48)] * 7) is None


def test_a_rung_that_was_never_reached_has_its_prior() -> None:
    assert learned([(50, 48), (30, 28), (20, 18), (9, 8), (0, 0), (0, 0), (0, 0)]) == RUNGS[4]


@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_is_read_as_it_is_written(rung: Rung) -> None:
    assert rung_of(rung.name) == rung


@pytest.mark.parametrize("text", ["4 of 6", "often", "", "3/5"])
def test_another_text_is_refused_with_the_rungs_that_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="must be one of '2 of 3'"):
        rung_of(text)
