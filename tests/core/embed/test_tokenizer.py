"""The tokenizer gives the ids that the model's own gives, and the embedder's short way the same ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.backends.embed import StaticEmbedder
from reasonblocks.backends.embed._static import MARKS, _is_plain, table
from reasonblocks.backends.embed._tokenizer import PIECE_CHARS, Letters
from reasonblocks.util.text import clip, words
from tests.core.embed.generated import mark, mark_of_all, texts

FIXTURE = json.loads((Path(__file__).parent / "data/token_ids.json").read_text(encoding="utf-8"))
GENERATED = texts()
TOKENIZER = table().tokenizer
PLAIN = st.text(st.characters(codec="ascii"), max_size=300)
ANYTHING = st.text(max_size=200)


def pieces(text: str) -> list[str]:
    known = list(table().vocabulary)
    return [known[one] for one in TOKENIZER.ids(text)]


def test_the_generated_texts_are_those_of_the_fixture() -> None:
    assert mark_of_all(GENERATED) == FIXTURE["texts"]


@pytest.mark.parametrize("at", range(len(FIXTURE["whole"])))
def test_the_ids_are_the_references(at: int) -> None:
    assert TOKENIZER.ids(GENERATED[at]) == FIXTURE["whole"][at]


def test_the_ids_of_every_generated_text_are_the_references() -> None:
    wanted = FIXTURE["marks"].split()
    wrong = [text for text, of in zip(GENERATED, wanted, strict=True) if mark(TOKENIZER.ids(text)) != of]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []), ("Couldn't", ["couldn", "'", "t"]), ("naïve café", ["naive", "cafe"]), ("a\x00b\u200bc", ["abc"]),
        ("a\u00a0b\u3000c", ["a", "b", "c"]), ("[MASK][mask]", ["[MASK]", "[", "mask", "]"]), ("x" * 101, ["[UNK]"]),
        ("half \ud800 pair", ["half", "pair"]),
    ],
)  # fmt: skip
def test_a_text_is_cut_as_bert_cuts_it(text: str, wanted: list[str]) -> None:
    assert pieces(text) == wanted


def unknown(counted: Counter[int]) -> dict[int, int]:
    """Unknown words count for nothing."""
    return {table().unknown: counted[table().unknown]}


def test_no_piece_is_longer_than_is_looked_for() -> None:
    assert max(map(len, table().vocabulary)) == PIECE_CHARS


def test_rare_characters_are_not_kept() -> None:
    letters = Letters()
    assert ("\U0001f600é".translate(letters), list(letters)) == ("\U0001f600é", [0xE9])


def sums(ids: list[int]) -> list[float]:
    rows = table().rows[numpy.array(ids, dtype=numpy.intp)].astype(numpy.int64)
    return [float(one) for one in rows.sum(axis=0)]


@pytest.mark.parametrize("kind", range(8))
def test_the_embedding_of_a_generated_text_is_the_sum_of_the_tokenizers_rows(kind: int) -> None:
    embedder = StaticEmbedder()
    for text in GENERATED[kind::40]:
        assert embedder.embed_sum((text,), None, None).tolist() == sums(TOKENIZER.ids(text)), text


@given(PLAIN)
def test_the_short_way_finds_the_tokenizers_pieces(text: str) -> None:
    """Marks are counted apart, so what is left are the words' pieces."""
    found = Counter(StaticEmbedder()._ids(words(text), {}).tolist())
    marks = {table().vocabulary[chr(code)] for code in MARKS}
    wanted = Counter(one for one in TOKENIZER.ids(text) if one not in marks)
    assert not _is_plain(text) or found - Counter(unknown(found)) == wanted - Counter(unknown(wanted))


@given(PLAIN | ANYTHING)
def test_the_embedding_of_any_text_is_the_sum_of_the_tokenizers_rows(text: str) -> None:
    assert StaticEmbedder().embed_sum((text,), None, None).tolist() == sums(TOKENIZER.ids(clip(text)))
