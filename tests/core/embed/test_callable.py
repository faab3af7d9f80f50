"""The embedder around a function: its output is checked, and its curves turn cosines into similarities."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy
import pytest

from reasonblocks.backends.embed import CallableEmbedder, curves
from reasonblocks.backends.embed.curves import UNFITTED, curves_file
from reasonblocks.exceptions import BadAnswer, ConfigError
from reasonblocks.patterns import Curve, SimilarityCurves

CURVES = SimilarityCurves(e1=Curve(((0.1, 0.0), (0.5, 0.8))), e2=Curve(((0.2, 0.0), (0.75, 0.7), (1.0, 1.0))))


def count(text: str) -> list[float]:
    return [float(len(text)), float(text.count(" ")), 1.0]


def counts(texts: list[str]) -> list[list[float]]:
    return [count(text) for text in texts]


def made(**given: Any) -> CallableEmbedder:
    return CallableEmbedder(given.pop("function", count), **{"id": "count-v1", "dim": 3, "curves": CURVES, **given})


def test_a_text_is_what_the_function_makes_of_it() -> None:
    assert made().embed("a b").tolist() == [3, 1, 1]


@pytest.mark.parametrize("many", [None, counts, lambda texts: numpy.array(counts(texts))])
def test_many_texts_are_rows(many: Any) -> None:
    assert made(many=many).embed_many(["a b", ""]).tolist() == [[3, 1, 1], [0, 0, 1]]
    assert made(many=lambda texts: 1 / 0).embed_many([]).shape == (0, 3)


@pytest.mark.parametrize("answer", [[1.0], [1.0, math.nan, 0.0], [1.0, math.inf, 0.0], "abc", None, [[1.0, 2.0, 3.0]]])
def test_a_wrong_answer_is_said_to_be_one(answer: Any) -> None:
    with pytest.raises(BadAnswer, match="count-v1"):
        made(function=lambda text: answer).embed("a")


def test_too_few_rows_are_said_to_be_so() -> None:
    with pytest.raises(BadAnswer, match="must be 2 vectors of dimension 3"):
        made(many=lambda texts: counts(texts[:1])).embed_many(["a", "b"])


@pytest.mark.parametrize(("name", "value"), [("id", " "), ("id", None), ("dim", 0), ("dim", True), ("dim", 2.0)])
def test_a_wrong_setting_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        made(**{name: value})


# --- what a cosine is worth


def test_curves_come_back_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "curves.toml"
    file.write_text("# how\n" + curves_file("count-v1", CURVES))
    assert made(curves=file).curves == CURVES


def test_without_curves_the_cosine_is_taken_with_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "_said", set())
    assert [made(curves=None).curves, made(curves=None).curves] == [UNFITTED, UNFITTED]
    assert [record.getMessage() for record in caplog.records] == [
        "nobody has fitted what cosines of count-v1 are worth; do so with: reasonblocks patterns calibrate"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is of embedder None, not of 'count-v1'"),
        ("x =", "is not TOML"),
        ('embedder = "count-v1"', r"\[e1\] needs points"),
        ('embedder = "count-v1"\n[e1]\npoints = [[0, true]]', r"\[e1\] needs points"),
        ('embedder = "count-v1"\n[e1]\npoints = [[0, 0], [0, 1]]', "cosines rising"),
    ],
)
def test_a_wrong_file_of_curves_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "curves.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        made(curves=file)


def test_a_file_of_curves_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        made(curves=tmp_path / "none.toml")
