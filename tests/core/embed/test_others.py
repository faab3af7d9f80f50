"""Embedders of others: what they answer is checked, what is missing is named, and what cosines are worth."""

from __future__ import annotations

import logging
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from reasonblocks.backends.embed import (
    CallableEmbedder,
    FastEmbedEmbedder,
    Model2VecEmbedder,
    SentenceTransformerEmbedder,
    curves,
)
from reasonblocks.backends.embed.curves import UNFITTED, curves_file
from reasonblocks.exceptions import BadAnswer, ConfigError, ExtraMissing
from reasonblocks.patterns import Curve, SimilarityCurves
from reasonblocks.ports import Embedder

CURVES = SimilarityCurves(e1=Curve(((0.1, 0.0), (0.5, 0.8))), e2=Curve(((0.2, 0.0), (0.75, 0.7), (1.0, 1.0))))


def count(text: str) -> list[float]:
    return [float(len(text)), float(text.count(" ")), 1.0]


def counts(texts: list[str]) -> list[list[float]]:
    return [count(text) for text in texts]


def made(**given: Any) -> CallableEmbedder:
    return CallableEmbedder(given.pop("function", count), **{"id": "count-v1", "dim": 3, "curves": CURVES, **given})


class FakeModel:
    """What the libraries' models have in common, as far as it is used."""

    dim = 3

    def encode(self, texts: list[str]) -> Any:
        return numpy.array(counts(list(texts)))

    def embed(self, texts: list[str]) -> Any:
        return (numpy.array(one) for one in counts(list(texts)))


FAKES = {
    "model2vec": SimpleNamespace(StaticModel=SimpleNamespace(from_pretrained=lambda name: FakeModel())),
    "sentence_transformers": SimpleNamespace(SentenceTransformer=lambda name: FakeModel()),
    "fastembed": SimpleNamespace(TextEmbedding=lambda model_name: FakeModel()),
}
KINDS: list[tuple[Any, str, str]] = [
    (Model2VecEmbedder, "model2vec", "model2vec:some/model"),
    (SentenceTransformerEmbedder, "sentence_transformers", "sentence-transformers:some/model"),
    (FastEmbedEmbedder, "fastembed", "fastembed:some/model"),
]
each_library = pytest.mark.parametrize(("kind", "library", "name"), KINDS, ids=[name for _, name, _ in KINDS])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in FAKES.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_a_function_becomes_an_embedder() -> None:
    assert isinstance(made(), Embedder)


def test_a_text_is_what_the_function_makes_of_it() -> None:
    assert made().embed("a b").tolist() == [3, 1, 1]


@pytest.mark.parametrize("many", [None, counts, lambda texts: numpy.array(counts(texts))])
def test_many_texts_are_rows(many: Any) -> None:
    assert made(many=many).embed_many(["a b", ""]).tolist() == [[3, 1, 1], [0, 0, 1]]


def test_no_text_asks_nothing() -> None:
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


@each_library
def test_a_missing_library_comes_with_its_line(
    kind: Any, library: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ExtraMissing, match=rf"pip install '{library.replace('_', '-')}>=[\d.]+'$"):
        kind("some/model", curves=CURVES)


@each_library
@pytest.mark.usefixtures("installed")
def test_a_librarys_model_embeds(kind: Any, library: str, name: str) -> None:
    embedder = kind("some/model", curves=CURVES)
    assert (embedder.id, embedder.dim, embedder.embed("a b").tolist()) == (name, 3, [3, 1, 1])


@each_library
@pytest.mark.usefixtures("installed")
def test_a_librarys_model_embeds_many(kind: Any, library: str, name: str) -> None:
    assert kind("some/model", curves=CURVES).embed_many(["", "a b"]).tolist() == [[0, 0, 1], [3, 1, 1]]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("kind", [Model2VecEmbedder, SentenceTransformerEmbedder])
def test_a_path_is_a_folder_of_a_model(kind: Any, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    assert kind(model, curves=CURVES).id == kind(str(model), curves=CURVES).id


def test_a_loaded_model_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="id"):
        SentenceTransformerEmbedder(FakeModel(), curves=CURVES)


def test_a_loaded_model_is_used_as_it_is() -> None:
    assert SentenceTransformerEmbedder(FakeModel(), id="mine", curves=CURVES).dim == 3


@pytest.mark.usefixtures("installed")
def test_a_folders_name_is_enough_of_an_id(tmp_path: Path) -> None:
    assert Model2VecEmbedder(tmp_path / ".", curves=CURVES).id == f"model2vec:{tmp_path.name}"


# --- what a cosine is worth


def test_curves_come_back_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "curves.toml"
    file.write_text("# how\n" + curves_file("count-v1", CURVES))
    assert made(curves=file).curves == CURVES


def test_without_curves_the_cosine_is_taken_with_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "_said", set())
    with caplog.at_level(logging.WARNING, "reasonblocks"):
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
