"""Every shortcut of the usual step gives what the plain definition gives."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.account import results, sameness
from reasonblocks.util.json import canonical
from reasonblocks.util.text import _WORD, clip, cut_with_hash, words

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


@given(st.text("aB'_1 .\x00-") | TEXTS)
def test_words_of_ascii_are_what_the_pattern_finds(text: str) -> None:
    assert words(text) == tuple(_WORD.findall(text.lower()))


@given(TEXTS, st.integers(40, 90))
def test_a_bounded_text_is_within_its_bound(text: str, limit: int) -> None:
    assert len(json.dumps(cut_with_hash(text, limit), ensure_ascii=False).encode()) - 2 <= limit


def test_a_long_text_is_cut_in_the_canonical_form() -> None:
    assert canonical({"a": "x" * 40_000}) == json.dumps({"a": clip("x" * 40_000)}, separators=(",", ":"))


def test_a_number_of_too_many_digits_has_no_canonical_form_of_its_own() -> None:
    assert canonical({"a": 10**5_000}) == '"dict"'


@given(TEXTS)
def test_a_red_or_green_check_is_what_its_pattern_says(text: str) -> None:
    assert results._has(results._RED, text, results._RED_MARKS) == (results._RED.search(text) is not None)
    assert results._has(results._GREEN, text, results._GREEN_MARKS) == (results._GREEN.search(text) is not None)


@given(TEXTS)
def test_a_text_is_masked_as_without_the_looks_ahead(text: str) -> None:
    plain = sameness._PATHS.sub("#", text)
    plain = sameness._VALUE.sub(sameness._without_value, plain)
    plain = sameness._BESIDE.sub(sameness._without_number, plain)
    plain = sameness._PORTS.sub("#", plain)
    plain = sameness._LETTERS_FIRST.sub("#", sameness._DIGITS_FIRST.sub("#", plain))
    assert sameness.mask_variables(text) == "".join(sameness._PICTURE.findall(text)) + plain
