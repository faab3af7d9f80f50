"""Every shortcut of the usual step gives what the plain definition gives."""

from __future__ import annotations

import json
from json.encoder import encode_basestring

from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.account import results, sameness
from reasonblocks.engine import scoring
from reasonblocks.monitors import roles
from reasonblocks.types import JSON
from reasonblocks.util import json as json_form
from reasonblocks.util.json import canonical
from reasonblocks.util.text import _WORD, bounded, clip, size, words

PIECES = (
    "a the 0 12 3 FAIL FAILED fail failed error errors=1 failures:2 1 ok OK 3 passed Success PASS no issues found all "
    "tests passed test result: running still pending in_progress not ready In-Progress timeout Timed out time again "
    "try retry rate limit ratelimit 429 503 connection reset Connection refused locked block deadlock network "
    "unavailable timestamp= TimeStamp= ts= now= NONCE= sent_at= requestId= request_id= client_key= path= x= ; "
    "traceback exception panic fatal maybe wait src/a.py fooBar v1.2 é ſent_at= ıd= K \u0660 12:03:59 0x7f3a12ff 2s"
).split(" ")
TEXTS = st.lists(st.sampled_from([*PIECES, "\n", "\t", '"', "\\", "\x00", "\x7f", "'"]) | st.text(max_size=8)).flatmap(
    lambda parts: st.sampled_from([" ", "", "\n", "= "]).map(lambda between: between.join(parts))
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
ARGUMENTS = st.recursive(
    SCALARS | st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(TEXTS)
def test_the_size_of_a_text_is_that_of_its_json(text: str) -> None:
    assert size(text) == len(encode_basestring(text).encode("utf-8", "replace")) - 2


@given(st.text("aB'_1 .\x00-") | TEXTS)
def test_words_of_ascii_are_what_the_pattern_finds(text: str) -> None:
    assert words(text) == tuple(_WORD.findall(text.lower()))


@given(TEXTS, st.integers(40, 90))
def test_a_bounded_text_is_within_its_bound(text: str, limit: int) -> None:
    assert len(json.dumps(bounded(text, limit), ensure_ascii=False).encode()) - 2 <= limit


@given(ARGUMENTS)
def test_the_canonical_form_is_that_of_the_encoder(value: JSON) -> None:
    assert canonical(value) == json_form._CANONICAL.encode(json_form._pruned(value, 0, iter(range(99))))


def test_a_long_text_is_cut_in_the_short_form_too() -> None:
    assert canonical({"a": "x" * 40_000}) == json.dumps({"a": clip("x" * 40_000)}, separators=(",", ":"))


def test_a_number_of_too_many_digits_has_no_canonical_form_of_its_own() -> None:
    assert canonical({"a": 10**5_000}) == '"dict"'


@given(TEXTS)
def test_a_red_check_is_what_the_pattern_says(text: str) -> None:
    assert results._red(text) == (results._RED.search(text) is not None)


@given(TEXTS)
def test_a_green_check_is_what_the_pattern_says(text: str) -> None:
    assert results._green(text) == (results._GREEN.search(text) is not None)


@given(TEXTS)
def test_what_starts_as_an_error_announces_one(text: str) -> None:
    head = text[: results.HEAD].lower()
    assert not results._STARTS.match(head) or any(mark in head for mark in results._ANNOUNCED)


@given(TEXTS)
def test_what_fetches_has_a_mark_of_it(text: str) -> None:
    assert not roles._FETCHES.search(text) or any(mark in text for mark in roles._FETCH_MARKS)


@given(TEXTS)
def test_a_text_is_masked_as_without_the_looks_ahead(text: str) -> None:
    plain = sameness._PATHS.sub("#", text)
    plain = sameness._VALUE.sub(sameness._without_value, plain)
    plain = sameness._BESIDE.sub(sameness._without_number, plain)
    plain = sameness._PORTS.sub("#", plain)
    plain = sameness._LETTERS_FIRST.sub("#", sameness._DIGITS_FIRST.sub("#", plain))
    assert sameness.masked(text) == "".join(sameness._PICTURE.findall(text)) + plain


@given(TEXTS)
def test_names_are_counted_alike_in_ascii(text: str) -> None:
    assert scoring._entities(text) == len(scoring._ENTITY.findall(text))


@given(TEXTS)
def test_hedges_and_errors_are_counted_in_one_go(text: str) -> None:
    tokens = words(text)
    parts = scoring._parts(text, tokens, 0, 0.0, 1.0)
    count = max(len(tokens), scoring.MIN_WORDS)
    hedges = sum(token in scoring.HEDGES for token in tokens)
    assert parts.hedging == round(min(1.0, hedges / count / scoring.HEDGES_FULL), 4)
    assert parts.errors == round(min(1.0, scoring._error_density(tokens)), 4)
