"""A calibration as a user gives it: a mapping or a file, whole or in part, and what is refused."""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks
from reasonblocks.backends.embed.curves import curves_for
from reasonblocks.exceptions import ConfigError
from reasonblocks.monitors.calibration import GONE, SHIPPED_LEVEL, as_toml, level_of
from reasonblocks.types import Level
from reasonblocks_workbench.authoring import read_patterns

LEVELS = st.builds(Level, mean=st.floats(0, 1), spread=st.floats(0, 1, exclude_min=True))


@given(made=LEVELS, said=st.text(st.characters(exclude_categories=["C"]) | st.just("\n"), max_size=40))
def test_what_is_written_is_read_again(made: Level, said: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("calibration") / "agent.toml"
    path.write_text(as_toml(made, said), encoding="utf-8")
    assert level_of(path) == made


def test_how_it_was_made_stands_before_it_as_comments() -> None:
    lines = as_toml(SHIPPED_LEVEL, "Made of\n\nthree runs.").splitlines()
    assert lines[:4] == ["# Made of", "#", "# three runs.", ""]


def test_nothing_given_is_the_shipped_one() -> None:
    assert level_of(None) == SHIPPED_LEVEL


def test_what_is_missing_is_as_shipped() -> None:
    assert level_of({"difficulty_mean": 0.5}) == Level(mean=0.5, spread=SHIPPED_LEVEL.spread)


def test_keys_of_older_files_are_read_over_and_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    older: dict[str, Any] = {"difficulty_mean": 0.5, **dict.fromkeys(GONE, 1)}
    assert level_of(older).mean == 0.5
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        ReasonBlocks(calibration=older)
    (record,) = caplog.records
    assert all(key in record.getMessage() for key in GONE)


WRONG: list[tuple[str, object]] = [
    *[("difficulty_mean", value) for value in (-0.1, 1.1, "0.5", None, True, math.nan, math.inf, [0.5])],
    *[("difficulty_spread", value) for value in (0, -1, 2, "x")],
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: repr(value)[:30])
def test_a_wrong_value_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        ReasonBlocks(calibration={name: value})
    assert caught.value.name == f"calibration[{name!r}]"
    assert caught.value.value is value
    assert caught.value.rule.startswith("must be")


def test_an_unknown_name_comes_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'difficulty_mean'"):
        level_of({"difficulty_men": 0.1})


@pytest.mark.parametrize("content", [b"fires = ", b"\xff\xfe", b"difficulty_mean = 0.1\ndifficulty_mean = 0.2\n"])
def test_a_file_that_is_no_toml_is_refused_by_its_path(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read as TOML") as caught:
        level_of(path)
    assert caught.value.value == str(path)


# ------------------------------------------------------------ files that are damaged

DAMAGED = {
    "deep": b"a = " + b"[" * 5_000,
    "deep tables": b".".join([b"a"] * 5_000) + b" = 1",
    "year 0": b"a = 0000-01-01",
    "month 13": b"a = 2026-13-01",
    "many digits": b"difficulty_mean = " + b"9" * 5_000,
    "many hex digits": b"difficulty_mean = 0x" + b"f" * 5_000,
    "more than a float holds": b"difficulty_mean = 0x" + b"f" * 500,
    "no UTF-8": b"\xff\xfe",
    "NUL": b"difficulty_mean = 0.5\n\0",
    "long": b"#" * 2_000_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=list(DAMAGED))
def test_a_damaged_file_is_refused_in_a_short_message(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"^calibration") as caught:
        level_of(path)
    assert len(str(caught.value)) < 1_000


PIECES = st.sampled_from(
    [b"difficulty_mean", b"difficulty_spread", b"fires", b" = ", b"0.5", b"1e999", b"nan", b"[", b"]", b"{", b"}", b".",
     b"\n", b"'", b'"', b"\\", b",", b"0000-00-00", b"24:60:60", b"0x", b"9" * 5_000, b"[" * 3_000, b"\0", b"\xff",
     b"#"]
)  # fmt: skip


@given(content=st.binary(max_size=200) | st.lists(PIECES, max_size=12).map(b"".join))
def test_any_bytes_are_a_calibration_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    try:
        made: object = level_of(path)
    except ConfigError as error:
        made = error
    assert isinstance(made, (Level, ConfigError))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "b"]), inner),
    max_leaves=6,
)


@given(values=st.dictionaries(st.sampled_from(["difficulty_mean", "difficulty_spread", "fires"]), VALUES))
def test_any_mapping_is_a_calibration_or_refused(values: dict[str, Any]) -> None:
    try:
        made: object = level_of(values)
    except ConfigError as error:
        made = error
    assert isinstance(made, (Level, ConfigError))


@pytest.mark.parametrize("kind", ["directory", "pipe", "device", "missing", "NUL in its name"])
def test_what_is_no_file_is_refused_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    path = {"device": "/dev/zero", "NUL in its name": "a\0b"}.get(kind, str(tmp_path / "agent.toml"))
    if kind == "directory":
        os.mkdir(path)
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"^calibration=.* cannot be read as TOML"):
        level_of(path)


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
