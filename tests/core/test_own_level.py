"""An agent's own level: when it counts, how far it moves a threshold, and what a run leaves for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.engine.own_level import (
    COMPOSITE,
    DIFFICULTY,
    FLAGGED,
    FLOOR,
    MEASURES,
    MIN_RUNS,
    PERSISTENCE,
    AgentProfile,
    Summary,
    judged,
    own_level,
    raised,
    summary_in,
    thresholds_of,
    with_own_level,
)
from reasonblocks.monitors.builtin import Calibration
from reasonblocks.types import Evaluation
from reasonblocks.util.json import evolve
from reasonblocks_workbench.calibration import shipped


def lasting(calibration: Calibration) -> float:
    return calibration.persistence.threshold


UNIT = st.floats(0, 1)
SUMMARIES = st.fixed_dictionaries(dict.fromkeys((*MEASURES, DIFFICULTY), UNIT))
PROFILES = st.lists(SUMMARIES, min_size=MIN_RUNS, max_size=60).map(lambda runs: AgentProfile(runs=tuple(runs)))


def profile(value: float, runs: int = 50, **more: float) -> AgentProfile:
    """Runs that are all alike."""
    return AgentProfile(runs=({**dict.fromkeys(MEASURES, value), **more},) * runs)


@given(st.lists(SUMMARIES, max_size=MIN_RUNS - 1))
def test_fewer_than_twenty_runs_change_nothing(runs: list[Summary]) -> None:
    assert judged(shipped(), AgentProfile(runs=tuple(runs))) is shipped()


def test_no_profile_changes_nothing() -> None:
    assert judged(shipped(), None) is shipped()


def test_twenty_runs_count() -> None:
    assert lasting(judged(shipped(), profile(0.9, MIN_RUNS))) > lasting(shipped())


def test_a_calibration_that_does_not_want_the_own_level_is_unchanged() -> None:
    explicit = evolve(shipped(), own_level=False)
    assert judged(explicit, profile(0.9)) is explicit


@given(PROFILES)
def test_no_threshold_falls_below_its_floor_or_exceeds_one(found: AgentProfile) -> None:
    own = thresholds_of(judged(shipped(), found))
    assert all(round(FLOOR * value, 4) <= own[name] <= 1 for name, value in thresholds_of(shipped()).items())


@given(PROFILES)
def test_the_runs_order_has_no_influence(found: AgentProfile) -> None:
    assert judged(shipped(), AgentProfile(runs=found.runs[::-1])) == judged(shipped(), found)


@given(UNIT, UNIT)
def test_an_agent_that_scores_higher_gets_no_lower_threshold(one: float, other: float) -> None:
    low, high = (thresholds_of(judged(shipped(), profile(value))) for value in sorted((one, other)))
    assert all(low[name] <= high[name] for name in low)


@given(UNIT, st.integers(MIN_RUNS, 150), st.integers(0, 50))
def test_more_runs_of_the_same_kind_move_a_threshold_further(value: float, runs: int, more: int) -> None:
    few, many = (lasting(judged(shipped(), profile(value, number))) for number in (runs, runs + more))
    assert lasting(shipped()) <= few <= many


@given(st.lists(UNIT, min_size=MIN_RUNS, max_size=200))
def test_many_runs_reach_their_own_threshold_rarely(values: list[float]) -> None:
    found = AgentProfile(runs=tuple([{PERSISTENCE: 0.8 + value / 6} for value in values] * 50))
    own = lasting(judged(shipped(), found))
    reached = sum(run[PERSISTENCE] >= own + 0.005 for run in found.runs)
    assert reached <= FLAGGED * len(found.runs)


def test_a_measure_that_too_few_runs_have_keeps_its_threshold() -> None:
    runs = tuple([{COMPOSITE: 0.9} for _ in range(50)])
    assert judged(shipped(), AgentProfile(runs=runs)) == shipped()


def test_the_thresholds_of_the_monitors_and_of_the_composite_stay() -> None:
    made = judged(shipped(), profile(0.9))
    assert (made.fires, made.composite) == (shipped().fires, shipped().composite)


def test_the_usual_difficulty_moves_the_prior() -> None:
    assert judged(shipped(), profile(0.1, difficulty=0.5)).level.mean > shipped().level.mean


def test_the_name_says_how_many_runs_and_which_thresholds() -> None:
    one, same, other = (own_level(shipped(), found) for found in (profile(0.9), profile(0.9), profile(0.8)))
    assert one
    assert same
    assert other
    assert one.name.startswith("own:50 runs:")
    assert one.name == same.name != other.name


@given(PROFILES)
def test_the_level_of_a_run_gives_the_same_calibration_again(found: AgentProfile) -> None:
    """A snapshot holds the level, and not the runs."""
    assert with_own_level(shipped(), own_level(shipped(), found)) == judged(shipped(), found)


def test_the_composite_counts_as_the_gate_reads_it() -> None:
    evaluation = Evaluation(composite=0.4)
    assert raised({}, evaluation, None, stale=True)[COMPOSITE] == 0
    assert raised({}, evaluation, 0.3, stale=True)[COMPOSITE] == 0.3


def test_the_chance_that_trouble_lasts_counts_only_in_a_stale_step() -> None:
    evaluation = Evaluation(persistence=0.7)
    assert raised({}, evaluation, None, stale=False)[PERSISTENCE] == 0
    assert raised({}, evaluation, None, stale=True)[PERSISTENCE] == 0.7


def test_a_lower_score_leaves_the_maxima_as_they_are() -> None:
    before = {COMPOSITE: 0.5, "semantic_loop": 0.8}
    assert raised(before, Evaluation(composite=0.1, scores={"semantic_loop": 0.2}), 0.1, stale=True) is before


def test_the_scores_of_a_callers_monitor_are_not_kept() -> None:
    assert "mine" not in raised({}, Evaluation(scores={"mine": 0.9}), None, stale=True)


def test_a_stored_summary_of_a_newer_version_is_read_without_its_new_names() -> None:
    assert summary_in({COMPOSITE: 0.5, "later": [1]}) == {COMPOSITE: 0.5}


def test_a_damaged_summary_is_none() -> None:
    assert [summary_in(given) for given in (None, 5, {}, {COMPOSITE: "0.5"}, {COMPOSITE: 2}, {COMPOSITE: True})] == [
        None
    ] * 6
