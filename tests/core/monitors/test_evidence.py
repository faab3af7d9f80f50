"""The evidence against a statement of its docstring that looks at all steps at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.monitors.builtin import BY_NAME, WEIGHTS, Calibration, IndicatorWeight
from reasonblocks.monitors.features import Features, features_of
from reasonblocks.monitors.indicators import INDICATORS, gather, shown
from reasonblocks.monitors.suite import MAX_BY_INDICATORS, by_indicators
from reasonblocks.types import JSON, Level, Step, ToolCall, ToolResult
from reasonblocks_workbench.calibration import shipped

TASK = "Repair the parser so that leap years pass"
ROUNDING = 5e-4
"""Each step's mean is kept with four places: an error of 5e-5 a step, faded."""
OUTPUTS = (
    "3 files were changed and nothing else happened here at all",
    "Error: no such module",
    "None",
    "",
    "still running",
)
THOUGHTS = ("I read the parser.", "", "Leap years fail, so I repair that.", "x" * 500)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    calls = draw(st.lists(st.sampled_from(["parser.py", "years.py", "pytest -q", ""]), max_size=2))
    return Step(
        thought=draw(st.sampled_from(THOUGHTS)),
        tool_calls=tuple(ToolCall(id=str(n), name="bash", arguments={"command": said}) for n, said in enumerate(calls)),
        tool_results=tuple(
            ToolResult(call_id=str(n), name="bash", output=draw(st.sampled_from(OUTPUTS)), is_error=draw(flags))
            for n in range(len(calls))
        ),
    )


flags = st.sampled_from([None, True, False])
RUNS = st.lists(steps(), min_size=1, max_size=30)


def features(run: Sequence[Step], task: str = TASK) -> list[Features]:
    return [features_of(step, index, task) for index, step in enumerate(run)]


def gathered(run: Sequence[Features], memory: JSON = None) -> tuple[list[Mapping[str, float]], JSON]:
    """After each step, and the last memory."""
    found = []
    for one in run:
        said, memory = gather(one, memory)
        found.append(said)
    return found, memory


def mean(run: Sequence[Features], value: Callable[[int], float]) -> float:
    """A step counts .85 of the one after it."""
    weights = [0.85 ** (len(run) - 1 - place) for place in range(len(run))]
    return sum(weight * value(place) for place, weight in enumerate(weights)) / sum(weights)


def in_trouble(one: Features) -> bool:
    return one.error is not None and not one.passing


def before(run: Sequence[Features], place: int) -> bool:
    """Was the last step that did something, or went wrong, in trouble?"""
    told = [one for one in run[:place] if one.call is not None or in_trouble(one)]
    return bool(told) and in_trouble(told[-1])


def acted(run: Sequence[Features], place: int) -> list[Features]:
    """The last 12 actions."""
    return [one for one in run[:place] if one.call is not None][-12:]


def length(characters: int) -> float:
    return math.log1p(min(characters, 16_000)) / math.log1p(16_000)


@given(run=RUNS)
@settings(max_examples=60, deadline=None)
def test_each_mean_is_that_of_all_steps_so_far(run: list[Step]) -> None:
    seen = features(run)
    found = gathered(seen)[0][-1]
    expected: dict[str, Callable[[int], float]] = {
        "error": lambda n: in_trouble(seen[n]),
        "errors_in_row": lambda n: in_trouble(seen[n]) and before(seen, n),
        "repeat_after_error": lambda n: (
            before(seen, n) and seen[n].call is not None and seen[n].call == acted(seen, n)[-1].call
        ),
        "same_outcome": lambda n: (
            seen[n].call is not None
            and not seen[n].waiting
            and (seen[n].call, seen[n].result) in [(one.call, one.result) for one in acted(seen, n)]
        ),
        "thought_length": lambda n: length(seen[n].lengths[0]),
        "call_length": lambda n: length(seen[n].lengths[1]),
        "result_length": lambda n: length(seen[n].lengths[2]),
    }
    assert {name: found[name] for name in expected} == pytest.approx(
        {name: mean(seen, value) for name, value in expected.items()}, abs=ROUNDING
    )


@given(run=RUNS)
@settings(max_examples=40, deadline=None)
def test_old_words_are_the_share_of_an_arguments_words_that_were_used_before(run: list[Step]) -> None:
    seen = features(run)

    def share(place: int) -> float:
        known = frozenset[str]().union(*(one.given for one in seen[:place]))
        return len(seen[place].given & known) / len(seen[place].given) if seen[place].given else 0.0

    assert gathered(seen)[0][-1]["old_words"] == pytest.approx(mean(seen, share), abs=ROUNDING)


@given(run=RUNS)
@settings(max_examples=40, deadline=None)
def test_off_task_is_the_share_of_the_tasks_longer_words_that_nothing_has_used(run: list[Step]) -> None:
    subject = {"repair", "parser", "that", "leap", "years", "pass"}
    used = set[str]().union(*(one.vocabulary | one.given for one in features(run)))
    found = gathered(features(run))[0][-1]["off_task"]
    assert found == pytest.approx(len(subject - used) / len(subject), abs=1e-4)


def test_without_a_task_nothing_is_off_it() -> None:
    assert gathered(features([Step(thought="I look.")], task=""))[0][-1]["off_task"] == 0.0


@pytest.mark.parametrize(("taken", "depth"), [(1, 0.0), (4, math.log(4) / math.log(20)), (20, 1.0), (30, 1.0)])
def test_depth_grows_with_the_logarithm_of_the_steps_up_to_20(taken: int, depth: float) -> None:
    assert gathered(features([Step(thought="I look.")] * taken))[0][-1]["depth"] == pytest.approx(depth, abs=1e-4)


@given(run=RUNS)
@settings(max_examples=40, deadline=None)
def test_every_evidence_has_a_value_from_0_to_1(run: list[Step]) -> None:
    for said in gathered(features(run))[0]:
        assert set(said) == set(INDICATORS)
        assert all(0 <= value <= 1 for value in said.values())


@given(run=RUNS, more=RUNS)
@settings(max_examples=30, deadline=None)
def test_what_comes_later_changes_nothing_that_was_said(run: list[Step], more: list[Step]) -> None:
    assert gathered(features([*run, *more]))[0][: len(run)] == gathered(features(run))[0]


@given(run=RUNS, at=st.integers(0, 29))
@settings(max_examples=30, deadline=None)
def test_a_memory_that_went_through_json_goes_on_as_if_it_had_not(run: list[Step], at: int) -> None:
    seen = features(run)
    said, memory = gathered(seen[:at])
    rest, _ = gathered(seen[at:], json.loads(json.dumps(memory)))
    assert [*said, *rest] == gathered(seen)[0]


@pytest.mark.parametrize("taken", [40, 400])
def test_the_memory_stays_small(taken: int) -> None:
    run = [
        Step(
            thought=f"I look at {n}.",
            tool_calls=(
                ToolCall(id="c", name="bash", arguments={"command": " ".join(f"word{n}x{k}" for k in range(200))}),
            ),
            tool_results=(ToolResult(call_id="c", output=f"Error: {n} is missing, and so is everything else"),),
        )
        for n in range(taken)
    ]
    assert len(json.dumps(gathered(features(run))[1])) < 2_000


def test_the_newest_steps_of_trouble_are_shown() -> None:
    failed = (ToolResult(call_id="c", output="Error: no such module"),)
    calls = [(ToolCall(id="c", name="bash", arguments={"command": str(number)}),) for number in range(6)]
    run = features([Step(thought="I look.", tool_calls=call, tool_results=failed) for call in calls])
    assert shown(gathered(run)[1])["semantic_loop"] == (2, 3, 4, 5)


VALUES = st.fixed_dictionaries(dict.fromkeys(INDICATORS, st.floats(0, 1)))
WEIGHED = st.builds(IndicatorWeight, weight=st.floats(-0.1, 0.1), centre=st.floats(0, 1))


def calibrated(evidence: Mapping[str, IndicatorWeight]) -> Calibration:
    return Calibration(
        level=Level(mean=0.1, spread=0.1), fires={}, composite=1.0, persistence=shipped().persistence, evidence=evidence
    )


@given(values=VALUES, evidence=st.dictionaries(st.sampled_from(sorted(INDICATORS)), WEIGHED))
def test_a_monitors_score_by_evidence_is_its_weighed_sum_within_bounds(
    values: dict[str, float], evidence: dict[str, IndicatorWeight]
) -> None:
    found = by_indicators(values, calibrated(evidence))
    for monitor in BY_NAME:
        own = [name for name in evidence if INDICATORS[name] == monitor]
        added = sum(evidence[name].weight * (values[name] - evidence[name].centre) for name in own)
        expected = min(MAX_BY_INDICATORS, max(0.0, 0.1 + added / WEIGHTS["coding"][monitor]))
        assert found[monitor] == pytest.approx(expected, abs=1e-4)


def test_evidence_at_its_centre_leaves_every_monitor_quiet() -> None:
    centres = {name: shipped().evidence[name].centre if name in shipped().evidence else 0.5 for name in INDICATORS}
    assert set(by_indicators(centres, shipped()).values()) == {0.1}
