"""Patience: when a rung is reached, how a run counts it and moves it, and which rung an agent's own runs choose."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.patience import RUNGS, Rung, after_step, is_reached, rung_in_use, rung_of
from reasonblocks.types import Patience

STEPS = st.text(alphabet=".AB", min_size=1, max_size=60)
RUNG = st.sampled_from(RUNGS)


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


def lived(letters: str, told: Sequence[int | None] = (), patience: Patience | None = None) -> Patience:
    """Return the patience after these steps; `told` has the first step after the newest text, for each step."""
    patience = patience or Patience()
    for index, letter in enumerate(letters):
        patience = after_step(patience, index, told[index] if told else None, dead=letter != ".")
    return patience


def totals(patience: Patience) -> list[tuple[int, int]]:
    return [(count.reached, count.needless) for count in patience.counts]


@given(STEPS)
def test_a_rung_is_reached_by_a_dead_step_with_enough_dead_ones(letters: str) -> None:
    for rung in RUNGS:
        now = [at for at in range(len(letters)) if is_reached(letters[: at + 1], rung)]
        assert now == reached_at(letters, rung)


@given(STEPS)
def test_a_run_counts_each_rung_step_by_step(letters: str) -> None:
    assert totals(lived(letters)) == [counts_of(letters, rung) for rung in RUNGS]


@given(STEPS, STEPS)
def test_nothing_is_counted_after_the_first_text(before: str, after: str) -> None:
    told = [None] * len(before) + [len(before)] * len(after)
    assert totals(lived(before + after, told)) == totals(lived(before))


def test_two_dead_stretches_that_end_by_themselves_make_a_run_more_patient() -> None:
    stretch = "AAA......"
    assert lived(stretch).offset == 0
    assert lived(stretch * 2).offset == 1
    assert lived(stretch * 8).offset == 1


def test_a_text_that_did_not_end_a_stretch_makes_a_run_less_patient() -> None:
    stuck, out = "AAAAAAAAAA", "AAAAA....."
    told = [None] * 4 + [4] * 6
    assert lived(stuck, told).offset == -1
    assert lived(out, told).offset == 0


def test_a_stretch_that_a_text_ended_has_not_ended_by_itself() -> None:
    stretch = "AAAAA....."
    told = [None] * 4 + [4] * 6 + [4] * 4 + [14] * 6
    assert lived(stretch * 2, told).offset == 0
    assert lived(stretch * 2).offset == 1


@given(STEPS, st.lists(st.none() | st.integers(0, 60), min_size=60, max_size=60), RUNG)
def test_a_run_is_never_more_than_one_rung_away_nor_silent(letters: str, told: list[int | None], rung: Rung) -> None:
    patience = lived(letters, told, Patience(rung=rung.name))
    in_use = rung_in_use(patience)
    assert in_use is not None
    assert abs(RUNGS.index(in_use) - RUNGS.index(rung)) <= 1


@given(STEPS)
def test_a_silent_run_stays_silent(letters: str) -> None:
    assert rung_in_use(lived(letters * 3, patience=Patience(rung=""))) is None


@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_is_read_as_it_is_written(rung: Rung) -> None:
    assert rung_of(rung.name) == rung


@pytest.mark.parametrize("text", ["4 of 6", "often", "", "3/5"])
def test_another_text_is_refused_with_the_rungs_that_there_are(text: str) -> None:
    with pytest.raises(ConfigError, match="must be one of '2 of 3'"):
        rung_of(text)
