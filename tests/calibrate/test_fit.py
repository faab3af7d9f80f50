"""What a fit makes of runs whose evidence is known, because it was planted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.builtin import BY_NAME, Calibration, IndicatorWeight
from reasonblocks.monitors.indicators import INDICATORS
from reasonblocks_workbench.calibration import Observed, as_toml, calibration_of, fit, shipped
from reasonblocks_workbench.calibration.compare import FIGURES, compared
from reasonblocks_workbench.calibration.fitting import opens
from tests.calibrate.planted import planted, steady, telling

NAMES = sorted(set(INDICATORS) - {"depth"})
HABITS = {"thought_length", "call_length", "result_length"}
FROM_NOTHING = sorted(set(NAMES) - HABITS)


def weights(made: Calibration) -> dict[str, float]:
    """All but that of depth, which nothing is fitted to: it is compared at equal length."""
    return {name: one.weight for name, one in made.evidence.items() if name != "depth"}


def moved(made: Calibration, prior: Calibration, name: str) -> float:
    none = IndicatorWeight(weight=0.0, centre=0.0)
    return abs(made.evidence.get(name, none).weight - prior.evidence.get(name, none).weight)


# --- from nothing


@pytest.mark.parametrize("name", FROM_NOTHING)
def test_evidence_that_goes_with_failure_gets_weight_and_nothing_else_does(name: str) -> None:
    found = weights(fit(telling(200, name)))
    assert set(found) == {name}
    assert found[name] > 0.01


def test_evidence_that_says_nothing_gets_no_weight() -> None:
    runs = [run for number in range(100) for run in _pair(number)]
    assert weights(fit(runs)) == {}


def _pair(number: int) -> list[Observed]:
    """A failure and a success of the same evidence."""
    value = number % 10 / 10
    return [
        planted(number, failed=failed, evidence=lambda step: {"error": value, "off_task": 1 - value})
        for failed in (True, False)
    ]


def test_evidence_that_speaks_for_a_run_gets_no_weight() -> None:
    turned = [replace(run, failed=not run.failed) for run in telling(200)]
    assert weights(fit(turned)) == {}


def test_what_grows_with_the_steps_gets_nothing_from_length_alone() -> None:
    runs = [
        planted(
            number,
            failed=number % 2 == 0,
            steps=(13 if number % 2 == 0 else 9) + number % 3,
            evidence=lambda step: {"error": step / 30, "same_result": step / 20},
        )
        for number in range(120)
    ]
    assert weights(fit(runs)) == {}


def test_how_often_a_source_fails_is_no_evidence() -> None:
    """One source has more of the evidence and more failures; within each it says nothing."""
    runs = [
        planted(number, failed=number % 10 < failing, evidence=steady({"error": value}), source=source)
        for source, failing, value in (("bad", 8, 0.9), ("good", 2, 0.1))
        for number in range(100)
    ]
    assert weights(fit(runs)) == {}


@pytest.mark.parametrize("name", sorted(HABITS))
def test_a_habit_of_one_agent_gets_no_weight_for_all(name: str) -> None:
    assert weights(fit(telling(200, name))) == {}


VALUES = st.lists(st.floats(0, 1), min_size=40, max_size=40)


@given(one=VALUES, other=VALUES)
@settings(max_examples=25, deadline=None)
def test_no_weight_is_below_0(one: list[float], other: list[float]) -> None:
    runs = [
        planted(place, failed=place % 2 == 0, evidence=steady({"error": a, "same_result": b, "off_task": a}))
        for place, (a, b) in enumerate(zip(one, other))
    ]
    assert min(weights(fit(runs)).values(), default=0.0) >= 0


# --- thresholds


def false_alarms(runs: Sequence[Observed], made: Calibration) -> float:
    good = [run for run in runs if not run.failed]
    return sum(any(opens(run, made)) for run in good) / len(good)


SCORES = st.lists(st.tuples(st.sampled_from(sorted(BY_NAME)), st.sampled_from([0.0, 0.6, 0.7, 0.85, 0.95])),
                  min_size=40, max_size=40)  # fmt: skip


@given(found=SCORES, wanted=st.sampled_from([0.05, 0.085, 0.3]))
@settings(max_examples=25, deadline=None)
def test_no_more_false_alarms_than_wanted_in_the_runs_of_the_fit(found: list[tuple[str, float]], wanted: float) -> None:
    runs = [planted(place, failed=place % 2 == 0, findings=dict([one])) for place, one in enumerate(found)]
    assert false_alarms(runs, fit(runs, false_alarms=wanted)) <= wanted


def test_more_false_alarms_buy_lower_thresholds() -> None:
    runs = [planted(n, failed=n % 2 == 0, findings={"semantic_loop": 0.6 + n % 20 / 50}) for n in range(80)]
    few, many = (fit(runs, false_alarms=wanted).fires["semantic_loop"] for wanted in (0.05, 0.5))
    assert few > many


def test_runs_that_were_stopped_at_their_success_do_not_raise_a_threshold() -> None:
    loud = [
        planted(n, failed=False, findings={"semantic_loop": 0.9}, stopped=True, source="stopped") for n in range(20)
    ]
    assert fit([*telling(60), *loud]).fires == fit(telling(60)).fires


# --- what is refused


@pytest.mark.parametrize("runs", [telling(29), [], [replace(run, failed=True) for run in telling(60)]])
def test_too_few_runs_or_one_outcome_are_refused(runs: list[Observed]) -> None:
    with pytest.raises(ConfigError, match=r"^runs="):
        fit(runs)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_of_false_alarms_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=r"^false_alarms="):
        fit(telling(40), false_alarms=share)


# --- around a prior


def test_thirty_runs_leave_the_weights_near_the_prior() -> None:
    """Within a quarter of the strongest weight, even where they say the opposite of it."""
    prior = fit(telling(200, "errors_in_row"))
    strongest = max(weights(prior).values())
    for runs in (telling(30, "same_result", share=1.0), telling(30, "errors_in_row", share=0.0)):
        assert max(moved(fit(runs, prior), prior, name) for name in NAMES) < 0.25 * strongest


def test_evidence_that_is_the_same_in_all_runs_gets_no_weight_around_a_prior() -> None:
    """But for rounding: a spread of 1e-17 is none."""
    runs = [
        replace(run, evidence=tuple({**one, "error": 0.1, "off_task": 0.7} for one in run.evidence))
        for run in telling(90)
    ]
    made = weights(fit(runs, fit(telling(200))))
    assert set(made) == {"same_result"}


def test_many_runs_move_the_weights() -> None:
    prior = fit(telling(200, "errors_in_row"))
    few, many = (fit(telling(runs), prior) for runs in (40, 4_000))
    assert moved(many, prior, "same_result") > 10 * moved(few, prior, "same_result")


def test_an_agents_habit_gets_weight_around_a_prior() -> None:
    assert weights(fit(telling(400, "thought_length"), fit(telling(200))))["thought_length"] > 0


def test_an_agents_own_level_is_the_mean_of_its_first_steps() -> None:
    runs = [replace(run, calm=(0.3,) * 10) for run in telling(40)]
    assert fit(runs, shipped()).level == replace(shipped().level, mean=0.3)


def test_runs_without_a_comparison_leave_the_weights_as_they_are() -> None:
    """All successes are over before the failures, which are over at the second step, can be compared."""
    prior = fit(telling(200))
    runs = [planted(n, failed=n % 2 == 0, steps=2) for n in range(40)]
    assert weights(fit(runs, prior)) == pytest.approx(weights(prior))


# --- what comes out


@pytest.mark.parametrize("prior", [None, shipped()], ids=["from nothing", "around the shipped"])
def test_the_same_runs_give_the_same_numbers(prior: Calibration | None) -> None:
    assert fit(telling(60), prior) == fit(telling(60), prior)


@pytest.mark.parametrize("prior", [None, shipped()], ids=["from nothing", "around the shipped"])
def test_what_is_fitted_is_what_its_file_says(prior: Calibration | None, tmp_path: Path) -> None:
    made = fit(telling(60), prior)
    path = tmp_path / "agent.toml"
    path.write_text(as_toml(made, "Made of planted runs."), encoding="utf-8")
    assert calibration_of(path) == made


def test_what_it_is_worth_is_told_beside_the_prior() -> None:
    blind = replace(shipped(), evidence={})
    calibrated, before = compared(telling(200, share=0.9), blind, false_alarms=0.2)
    assert calibrated["match"].point > 0.8
    assert before["match"].point == 0.5


def test_every_figure_has_a_meaning() -> None:
    calibrated, _ = compared(telling(200, share=0.9), shipped(), false_alarms=0.2)
    assert set(calibrated) <= set(FIGURES)
    assert {"land", "match", "full", "r10", "own_failing", "own_passing"} <= set(calibrated)


def test_no_run_is_judged_by_what_was_fitted_to_its_task() -> None:
    """Each task has evidence of its own; what the other folds say of it is nothing."""
    runs = [
        replace(run, task_key=str(number % 5), evidence=tuple({**one, "same_result": 0.0} for one in run.evidence))
        for number, run in enumerate(telling(100))
    ]
    calibrated, _ = compared(runs, replace(shipped(), evidence={}), false_alarms=0.2)
    assert calibrated["match"].point == 0.5
