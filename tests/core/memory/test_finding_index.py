"""The ranking of findings: its terms, and its score against a slow plain statement of the rule."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.backends.stores.finding_index import EXPONENT, TERMS_SHARE, FindingIndex, embedded_text, terms
from reasonblocks.types import Finding, RecalledFinding
from tests.whole import QUICK_EXAMPLES, WHOLE


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("load_rawHTML", ["load_rawhtml", "load", "raw", "html"]),
        ("src/html2text.py", ["src", "html2text", "html", "2", "text", "py"]),
        ("HTTPServer.getId()", ["httpserver", "http", "server", "getid", "get", "id"]),
        ("the tests, this status, a class", ["the", "test", "this", "status", "a", "class"]),
        ("Größe __init__ 日本", ["größe", "__init__", "init", "日本"]),
        ("?! 🙂", []),
    ],
)
def test_words_and_the_parts_of_identifiers_are_terms(text: str, wanted: list[str]) -> None:
    assert list(terms(text)) == wanted


@pytest.mark.parametrize(("path", "wanted"), [("src/htmlParser.py", "src html Parser py\nx"), ("", "x"), ("/", "x")])
def test_the_words_of_the_path_are_embedded(path: str, wanted: str) -> None:
    assert embedded_text(Finding(content="x", file_path=path)) == wanted


Unit = npt.NDArray[np.float32]
Kept = Mapping[str, tuple[Finding, Unit]]


def plain(kept: Kept, query: str, unit: Unit, top_k: int, threshold: float) -> list[tuple[str, float]]:
    """The rule without any index."""
    has = {name: {*terms(f"{finding.file_path} {finding.content}")} for name, (finding, _) in kept.items()}

    def rarity(term: str) -> float:
        count = sum(term in one for one in has.values())
        return math.log(1 + (len(kept) - count + 0.5) / (count + 0.5))

    asked = {*terms(query)}
    total = math.fsum(map(rarity, asked))
    found = []
    for name, (_, own) in kept.items():
        share = math.fsum(map(rarity, asked & has[name])) / total if total else 0.0
        cosine = min(1.0, max(0.0, math.fsum(float(a) * float(b) for a, b in zip(own, unit))))
        found.append((name, (TERMS_SHARE * share + (1 - TERMS_SHARE) * cosine) ** EXPONENT))
    found.sort(key=lambda one: (-round(one[1], 6), one[0]))
    return [one for one in found if round(one[1], 6) >= threshold][:top_k]


def units(numbers: tuple[int, int, int]) -> Unit:
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return np.array([number / length for number in numbers], np.float32)


TEXTS = st.lists(st.sampled_from(["test", "tests", "parse_html", "html", "parseHTML", "the", "ä", "tox"]), max_size=6)
UNITS = st.tuples(*[st.integers(-3, 3)] * 3).map(units)
NAMES = st.sampled_from("abcdefgh")
CHANGES = st.lists(st.tuples(NAMES, st.one_of(st.none(), st.tuples(TEXTS, UNITS))), max_size=20)


@settings(max_examples=100 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(
    changes=CHANGES, query=TEXTS, unit=UNITS, top_k=st.integers(1, 9), threshold=st.sampled_from([0.0, 0.25, 0.6, 1.0])
)
def test_a_search_gives_what_the_plain_rule_gives(
    changes: list[tuple[str, tuple[list[str], Unit] | None]], query: list[str], unit: Unit, top_k: int, threshold: float
) -> None:
    index, kept = FindingIndex(), dict[str, tuple[Finding, Unit]]()
    for name, new in changes:
        if new is None:
            index.remove([name, "unknown"])
            kept.pop(name, None)
        else:
            finding = Finding(content=" ".join(new[0]), file_path="src/html.py", finding_id=name)
            index.put(finding, new[1])
            kept[name] = finding, new[1]
    found = index.search(" ".join(query), unit, top_k=top_k, score_threshold=threshold)
    wanted = plain(kept, " ".join(query), unit, top_k, threshold)
    assert [one.score for one in found] == pytest.approx([score for _, score in wanted], abs=2e-6)
    assert ranks(found) == sorted(ranks(found))
    if len({round(score, 5) for _, score in wanted}) == len(wanted):  # without ties, which rounding may part
        assert [one.finding_id for one in found] == [name for name, _ in wanted]


def ranks(found: tuple[RecalledFinding, ...]) -> list[tuple[float, str]]:
    return [(-one.score, one.finding_id) for one in found]


def test_an_index_that_shrank_forgets_what_it_had() -> None:
    index, unit = FindingIndex(), units((1, 0, 0))
    for number in range(500):
        index.put(Finding(content=f"note {number}", finding_id=f"{number:03}"), unit)
    index.remove([f"{number:03}" for number in range(495)])
    assert [one.finding_id for one in index.search("note 497", unit, top_k=9, score_threshold=0.0)] == [
        "497", "495", "496", "498", "499",
    ]  # fmt: skip
    assert len(index._findings) < 100


def test_the_score_does_not_depend_on_the_number_of_rows() -> None:
    chance = np.random.default_rng(7)
    rows = chance.standard_normal((300, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = set()
    for count in (1, 7, 64, 300):
        index = FindingIndex()
        for number in range(count):
            index.put(Finding(content="x", finding_id=f"{number:03}"), rows[number])
        found = index.search("unknown", rows[0] * np.float32(0.3), top_k=count, score_threshold=0.0)
        scores |= {one.score for one in found if one.finding_id == "000"}
    assert len(scores) == 1
