"""A calibration as a user gives it: a mapping or a file, whole or in part, and what is refused."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks, StepInput, StepOutcome
from reasonblocks.backends.embed.curves import curves_for
from reasonblocks.exceptions import ConfigError, ExtraMissing
from reasonblocks.monitors.builtin import BY_NAME, Calibration, IndicatorWeight
from reasonblocks.monitors.calibration import MAX_WEIGHT, PERSISTENCE, SHIPPED, SHIPPED_LEVEL
from reasonblocks.monitors.indicators import INDICATORS
from reasonblocks.monitors.persistence import Weights
from reasonblocks.types import Level
from reasonblocks_workbench.authoring import read_patterns
from reasonblocks_workbench.calibration import as_toml, calibration_of, fit, shipped
from tests.calibrate.planted import telling
from tests.core.monitors.conftest import TASK, act

ABOVE_0 = st.floats(0, 1, exclude_min=True)
WEIGHED = st.builds(IndicatorWeight, weight=st.floats(-MAX_WEIGHT, MAX_WEIGHT), centre=st.floats(0, 1))
CALIBRATIONS = st.builds(
    Calibration,
    level=st.builds(Level, mean=st.floats(0, 1), spread=ABOVE_0),
    fires=st.fixed_dictionaries(dict.fromkeys(BY_NAME, ABOVE_0)),
    composite=ABOVE_0,
    persistence=st.builds(
        Weights, threshold=ABOVE_0, **dict.fromkeys(PERSISTENCE[1:], st.floats(-MAX_WEIGHT, MAX_WEIGHT))
    ),
    evidence=st.dictionaries(st.sampled_from(sorted(INDICATORS)), WEIGHED),
)


@given(made=CALIBRATIONS, said=st.text(st.characters(exclude_categories=["C"]) | st.just("\n"), max_size=40))
def test_what_is_written_is_read_again(made: Calibration, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("calibration") / "agent.toml"
    path.write_text(as_toml(made, said), encoding="utf-8")
    assert calibration_of(path) == made


def test_how_it_was_made_stands_before_it_as_comments() -> None:
    lines = as_toml(shipped(), "Made of\n\nthree runs.").splitlines()
    assert lines[:4] == ["# Made of", "#", "# three runs.", ""]


def test_nothing_given_is_the_shipped_one() -> None:
    assert calibration_of(None) is shipped()


def test_the_shipped_level_is_the_scorers() -> None:
    assert shipped().level == SHIPPED_LEVEL


def test_the_shipped_file_says_how_it_was_made() -> None:
    assert "./dev shipped_calibration" in SHIPPED.read_text(encoding="utf-8")


def test_the_shipped_evidence_speaks_against_a_run_alone() -> None:
    assert min(one.weight for one in shipped().evidence.values()) > 0


def test_what_is_missing_is_as_shipped() -> None:
    made = calibration_of({"difficulty_mean": 0.5, "fires": {"semantic_loop": 0.9}})
    assert (made.level.mean, made.level.spread) == (0.5, shipped().level.spread)
    assert made.fires == {**shipped().fires, "semantic_loop": 0.9}
    assert (made.composite, made.evidence) == (shipped().composite, shipped().evidence)


def test_evidence_is_given_as_a_whole() -> None:
    """What a fit has found to weigh nothing is not in its file."""
    made = calibration_of({"evidence": {"error": {"weight": 0.1, "centre": 0.2}}})
    assert made.evidence == {"error": IndicatorWeight(weight=0.1, centre=0.2)}


WRONG: list[tuple[str, object]] = [
    *[("difficulty_mean", value) for value in (-0.1, 1.1, "0.5", None, True, math.nan, math.inf, [0.5])],
    *[("difficulty_spread", value) for value in (0, -1, 2, "x")],
    *[("composite_fires", value) for value in (0, 1.5, None)],
    *[("fires", value) for value in (5, "all", [0.5], None)],
    *[("evidence", value) for value in (5, "all", [0.5])],
]
WRONG_INSIDE: list[tuple[str, str, object]] = [
    *[("fires", "semantic_loop", value) for value in (0, -0.1, 1.01, "0.6", True, None)],
    *[
        ("evidence", "error", value)
        for value in (
            0.5,
            {},
            {"weight": 0.1},
            {"weight": 0.1, "centre": 2},
            {"weight": 11, "centre": 0},
            {"weight": math.nan, "centre": 0},
            {"weight": "1", "centre": 0},
            {"weight": 0.1, "centre": 0, "more": 1},
        )
    ],
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: repr(value)[:30])
def test_a_wrong_value_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        ReasonBlocks(calibration={name: value})
    assert caught.value.name == f"calibration[{name!r}]"
    assert caught.value.value is value
    assert caught.value.rule.startswith("must be")


@pytest.mark.parametrize(("table", "name", "value"), WRONG_INSIDE, ids=lambda value: repr(value)[:30])
def test_a_wrong_value_in_a_table_is_refused_by_both_names(table: str, name: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        ReasonBlocks(calibration={table: {name: value}})
    assert caught.value.name == f"calibration[{table!r}][{name!r}]"
    assert caught.value.rule.startswith("must be")


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"fire": {}}, "fires"),
        ({"fires": {"semantic_lop": 0.5}}, "semantic_loop"),
        ({"evidence": {"same_results": {"weight": 0.1, "centre": 0.1}}}, "same_result"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_one(given: dict[str, Any], nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{nearest}'"):
        calibration_of(given)


@pytest.mark.parametrize("content", [b"fires = ", b"\xff\xfe", b"difficulty_mean = 0.1\ndifficulty_mean = 0.2\n"])
def test_a_file_that_is_no_toml_is_refused_by_its_path(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read as TOML") as caught:
        calibration_of(path)
    assert caught.value.value == str(path)


def test_a_calibration_decides_what_fires() -> None:
    """The same run, under thresholds that it reaches and that it does not."""
    steps = [act("run_tests", "3 failed", thought="Once more.") for _ in range(2)]
    fired = []
    for threshold in (0.01, 1.0):
        with ReasonBlocks(calibration={"fires": dict.fromkeys(BY_NAME, threshold)}, strict=True) as rb:
            session = rb.session(task=TASK)
            decision = session.begin_step(StepInput())
            for step in steps:
                session.end_step(decision, StepOutcome())
                decision = session.begin_step(StepInput(completed=step))
            fired.append(any(entry.monitors_fired for entry in session.step_log))
    assert fired == [True, False]


def test_without_scikit_learn_a_fit_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "sklearn.linear_model"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ExtraMissing, match=r"pip install 'scikit-learn>=1.4'$"):
        fit(telling(40))


# ------------------------------------------------------------ files that are damaged

DAMAGED = {
    "deep": b"a = " + b"[" * 5_000,
    "deep tables": b".".join([b"a"] * 5_000) + b" = 1",
    "year 0": b"a = 0000-01-01",
    "month 13": b"a = 2026-13-01",
    "many digits": b"difficulty_mean = " + b"9" * 5_000,
    "many hex digits": b"difficulty_mean = 0x" + b"f" * 5_000,
    "more than a float holds": b"[evidence.same_result]\nweight = 0x" + b"f" * 500 + b"\ncentre = 0.5",
    "no UTF-8": b"\xff\xfe",
    "NUL": b"difficulty_mean = 0.5\n\0",
    "long": b"#" * 2_000_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_file_is_refused_in_a_short_message(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"^calibration") as caught:
        calibration_of(path)
    assert len(str(caught.value)) < 1_000


PIECES = st.sampled_from(
    [b"difficulty_mean", b"fires", b"evidence", b" = ", b"0.5", b"1e999", b"nan", b"[", b"]", b"{", b"}", b".", b"\n",
     b"'", b'"', b"\\", b",", b"0000-00-00", b"24:60:60", b"0x", b"9" * 5_000, b"[" * 3_000, b"\0", b"\xff", b"#"]
)  # fmt: skip


@given(content=st.binary(max_size=200) | st.lists(PIECES, max_size=12).map(b"".join))
def test_any_bytes_are_a_calibration_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    try:
        made: object = calibration_of(path)
    except ConfigError as error:
        made = error
    assert isinstance(made, (Calibration, ConfigError))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["weight", "centre", "same_result"]), inner),
    max_leaves=6,
)


@given(values=st.dictionaries(st.sampled_from(["difficulty_mean", "composite_fires", "fires", "evidence"]), VALUES))
def test_any_mapping_is_a_calibration_or_refused(values: dict[str, Any]) -> None:
    try:
        made: object = calibration_of(values)
    except ConfigError as error:
        made = error
    assert isinstance(made, (Calibration, ConfigError))


@pytest.mark.parametrize("kind", ["directory", "pipe", "device", "missing", "NUL in its name"])
def test_what_is_no_file_is_refused_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    path = {"device": "/dev/zero", "NUL in its name": "a\0b"}.get(kind, str(tmp_path / "agent.toml"))
    if kind == "directory":
        os.mkdir(path)
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"^calibration=.* cannot be read as TOML"):
        calibration_of(path)


@pytest.mark.parametrize("suffix", [".toml", ""])
def test_a_pipe_in_the_place_of_authored_patterns_is_not_waited_for(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"patterns{suffix}"
    os.mkfifo(path)
    assert [str(one) for one in read_patterns(path)] == [f"{path}: cannot be read: is not a regular file"]


def test_a_pipe_in_the_place_of_curves_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "curves.toml")
    with pytest.raises(ConfigError, match="cannot be read: is not a regular file"):
        curves_for("any", tmp_path / "curves.toml")


@pytest.mark.parametrize("point", ["nan", "inf", "0x" + "f" * 500, "2", "true", "[]"])
def test_curves_of_no_numbers_are_refused(point: str, tmp_path: Path) -> None:
    path = tmp_path / "curves.toml"
    path.write_text(f'embedder = "any"\n[e1]\npoints = [[0.0, 0.0], [1.0, {point}]]\n[e2]\npoints = [[0, 0], [1, 1]]\n')
    with pytest.raises(ConfigError):
        curves_for("any", path)
