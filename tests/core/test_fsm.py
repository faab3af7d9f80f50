"""The state machine against an independent statement of its table, in decimal numbers."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.engine.fsm import TABLE, DifficultyFSM, Thresholds
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import FSMState

quick = settings(derandomize=True, deadline=None, database=None, max_examples=150)

DEFAULTS: dict[str, float] = {
    "fast_threshold": 0.2,
    "slow_threshold": 0.6,
    "skip_threshold": 0.85,
    "hysteresis_margin": 0.1,
    "fast_window": 6,
    "slow_window": 5,
    "skip_window": 35,
}


def exact(number: float) -> Decimal:
    """The decimal number as written."""
    return Decimal(str(number))


def expected(state: FSMState, history: Sequence[float], **given: float) -> FSMState:
    """The table, read off the page row by row."""
    p = {**DEFAULTS, **given}
    scores = [exact(score) for score in history]
    fast, slow, skip = exact(p["fast_threshold"]), exact(p["slow_threshold"]), exact(p["skip_threshold"])
    margin = exact(p["hysteresis_margin"])

    def last(window: str) -> list[Decimal] | None:
        count = int(p[window])
        return scores[-count:] if len(scores) >= count else None

    if state is FSMState.INIT:
        return FSMState.NORMAL
    if state is FSMState.NORMAL:
        if (low := last("fast_window")) and all(score < fast for score in low):
            return FSMState.FAST
        if (high := last("slow_window")) and all(score > slow for score in high):
            return FSMState.SLOW
        return FSMState.NORMAL
    if state is FSMState.FAST:
        return FSMState.NORMAL if scores and scores[-1] > fast + margin else FSMState.FAST
    if state is FSMState.SLOW:
        if scores and scores[-1] < slow - margin:
            return FSMState.NORMAL
        if (stuck := last("skip_window")) and all(score > skip for score in stuck):
            return FSMState.SKIP
        return FSMState.SLOW
    if state is FSMState.SKIP:
        return FSMState.NORMAL if scores and scores[-1] < slow - margin else FSMState.SKIP
    return FSMState.END


hundredths = st.integers(0, 100).map(lambda number: number / 100)
windows = st.integers(1, 8)


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, float]:
    """Valid parameters, in hundredths or in ten-thousandths."""
    whole = draw(st.sampled_from((100, 10_000)))
    slow = draw(st.integers(1, whole))
    fast = draw(st.integers(0, slow - 1))
    values = {
        "fast_threshold": fast,
        "slow_threshold": slow,
        "skip_threshold": draw(st.integers(slow, whole)),
        "hysteresis_margin": draw(st.integers(0, slow - fast - 1)),
    }
    counts = {name: draw(windows) for name in ("fast_window", "slow_window", "skip_window")}
    return {**{name: value / whole for name, value in values.items()}, **counts}


def near(given: dict[str, float]) -> st.SearchStrategy[float]:
    """Difficulties that lie on the bounds, next to them, or anywhere."""
    fast, slow, margin = (
        exact(given["fast_threshold"]),
        exact(given["slow_threshold"]),
        exact(given["hysteresis_margin"]),
    )
    bounds = [fast, slow, exact(given["skip_threshold"]), fast + margin, slow - margin]
    least = Decimal("0.0001")
    around = [float(bound + shift) for bound in bounds for shift in (-least, Decimal(0), least)]
    return st.one_of(st.sampled_from([value for value in around if 0 <= value <= 1] or [0.0]), hundredths)


@quick
@given(st.data())
def test_a_transition_is_what_the_table_says_for_every_setting(data: st.DataObject) -> None:
    given_ = data.draw(parameters())
    history = data.draw(st.lists(near(given_), max_size=12))
    state = data.draw(st.sampled_from(FSMState))
    fsm = DifficultyFSM(**given_)  # type: ignore[arg-type]  # windows are ints in it
    assert fsm.transition(state, history) is expected(state, history, **given_)


@quick
@given(st.lists(st.floats(0, 1, allow_nan=False), max_size=40), st.sampled_from(FSMState))
def test_a_transition_is_what_the_table_says_for_any_float(history: list[float], state: FSMState) -> None:
    assert DifficultyFSM().transition(state, history) is expected(state, history)


@quick
@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.19, 0.2, 0.3, 0.5, 0.61, 0.86, 0.9]), st.integers(1, 40)), max_size=6)
)
def test_a_whole_run_goes_through_the_states_of_the_table(stretches: list[tuple[float, int]]) -> None:
    fsm, state, history = DifficultyFSM(), FSMState.INIT, list[float]()
    for difficulty, count in stretches:
        for _ in range(count):
            history = [*history, difficulty][-fsm.history_limit :]
            before, state = state, fsm.transition(state, history)
            assert state is expected(before, history)


def test_every_state_has_a_row() -> None:
    assert set(TABLE) == set(FSMState)


def test_the_states_values_are_their_upper_case_names() -> None:
    assert [state.value for state in FSMState] == ["INIT", "FAST", "NORMAL", "SLOW", "SKIP", "END"]


def test_the_default_parameters_are_those_of_the_page() -> None:
    thresholds = Thresholds()
    assert {name: getattr(thresholds, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("state", "newest", "to"),
    [
        ("FAST", 0.3, "FAST"), ("FAST", 0.31, "NORMAL"), ("FAST", 0.30000000000000004, "NORMAL"),
        ("SLOW", 0.5, "SLOW"), ("SLOW", 0.49, "NORMAL"), ("SKIP", 0.5, "SKIP"), ("SKIP", 0.49, "NORMAL"),
    ],
)  # fmt: skip
def test_a_score_equal_to_a_bound_stays(state: str, newest: float, to: str) -> None:
    assert DifficultyFSM().transition(FSMState(state), (newest,)) is FSMState(to)


@pytest.mark.parametrize(
    ("fast", "margin", "written"),
    [(0.2, 0.1, 0.3), (0.15, 0.08, 0.23), (0.1, 0.2, 0.3), (0.07, 0.08, 0.15), (0.1, 0.0001, 0.1001)],
)
def test_a_sum_is_that_of_the_decimal_numbers_as_written(fast: float, margin: float, written: float) -> None:
    fsm = DifficultyFSM(fast_threshold=fast, hysteresis_margin=margin)
    assert fsm.transition(FSMState.FAST, (written,)) is FSMState.FAST


def test_a_difference_is_that_of_the_decimal_numbers_as_written() -> None:
    fsm = DifficultyFSM(slow_threshold=0.65, hysteresis_margin=0.08)
    assert fsm.transition(FSMState.SLOW, (0.57,)) is FSMState.SLOW


def test_the_callers_decimal_context_changes_no_bound() -> None:
    fsm = DifficultyFSM(fast_threshold=0.155, hysteresis_margin=0.08)
    with decimal.localcontext() as context:
        context.prec = 1
        assert fsm.transition(FSMState.FAST, (0.234,)) is FSMState.FAST


def test_the_history_holds_at_least_the_largest_window() -> None:
    assert DifficultyFSM(skip_window=120).history_limit >= 120


# ------------------------------------------------------------ validation

WRONG: list[tuple[str, Any, str]] = [
    *[
        (name, value, "number")
        for name in list(DEFAULTS)[:4]
        for value in (True, "0.2", None, float("nan"), float("inf"))
    ],
    *[(name, value, r"\[0, 1\]") for name in list(DEFAULTS)[:3] for value in (-0.01, 1.01)],
    ("hysteresis_margin", -0.01, r"0"),
    ("fast_threshold", 0.6, "slow_threshold"),
    ("fast_threshold", 0.7, "slow_threshold"),
    ("skip_threshold", 0.59, "slow_threshold"),
    ("hysteresis_margin", 0.4, "slow_threshold"),
    *[(name, value, "int") for name in list(DEFAULTS)[4:] for value in (True, 6.0, "6", None)],
    *[(name, value, "at least 1") for name in list(DEFAULTS)[4:] for value in (0, -1)],
]


@pytest.mark.parametrize(("name", "value", "rule"), WRONG)
def test_a_wrong_parameter_is_refused_with_its_name_value_and_rule(name: str, value: Any, rule: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}={re.escape(repr(value))}: .*{rule}") as caught:
        DifficultyFSM(**{name: value})
    assert (caught.value.name, repr(caught.value.value)) == (name, repr(value))


@pytest.mark.parametrize(("key", "nearest"), [("fast_treshold", "fast_threshold"), ("skip_windows", "skip_window")])
def test_an_unknown_key_is_refused_with_the_nearest_valid_name(key: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"'{key}'.*did you mean '{nearest}'"):
        DifficultyFSM.of({key: 0.3})


@quick
@given(st.fixed_dictionaries(dict.fromkeys(list(DEFAULTS)[:4], hundredths)))
def test_exactly_the_settings_of_the_page_are_accepted(values: dict[str, float]) -> None:
    fast, slow, skip, margin = (exact(values[name]) for name in list(DEFAULTS)[:4])
    try:
        Thresholds.of(values)
    except ConfigError:
        accepted = False
    else:
        accepted = True
    assert accepted == (fast < slow <= skip and fast + margin < slow)


@quick
@given(parameters())
def test_a_machine_from_a_mapping_is_the_machine_from_arguments(given_: dict[str, float]) -> None:
    assert DifficultyFSM.of(given_).thresholds == DifficultyFSM(**given_).thresholds  # type: ignore[arg-type]
