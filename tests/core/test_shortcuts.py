"""Every shortcut of the usual step gives what the plain definition gives."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from json.encoder import encode_basestring
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.engine import scoring
from reasonblocks.monitors import arguments, indicators, outcome, roles
from reasonblocks.types import JSON, Step
from reasonblocks.util import json as json_form
from reasonblocks.util.json import canonical, evolve
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
    assert canonical(value) == json_form._CANONICAL.encode(json_form._pruned(value, 0))


def test_a_long_text_is_cut_in_the_short_form_too() -> None:
    assert canonical({"a": "x" * 40_000}) == json.dumps({"a": clip("x" * 40_000)}, separators=(",", ":"))


def test_a_number_of_too_many_digits_has_no_canonical_form_of_its_own() -> None:
    assert canonical({"a": 10**5_000}) == '"dict"'


@given(ARGUMENTS)
def test_arguments_are_flattened_as_part_by_part(value: JSON) -> None:
    assert arguments.flattened(value) == arguments._of_parts(value)


@given(st.integers(0, 20), st.integers(0, 9_000), st.integers(0, 9_000))
def test_long_arguments_are_flattened_as_part_by_part(count: int, key: int, length: int) -> None:
    value: JSON = {"k" * key + str(at): "v " * (length // 2) for at in range(count)}
    assert arguments.flattened(value) == arguments._of_parts(value)


@pytest.mark.parametrize("name", ["_WAITING", "_PASSING", "_GREEN"])
@given(text=TEXTS)
def test_a_pattern_of_any_case_finds_what_it_finds_when_it_ignores_case(name: str, text: str) -> None:
    pattern: outcome.AnyCase = getattr(outcome, name)
    assert pattern.found(text) == (pattern._any.search(text) is not None)


@given(TEXTS)
def test_a_red_test_is_what_the_pattern_says(text: str) -> None:
    assert outcome.says_red(text) == (outcome._RED.search(text) is not None)


@given(TEXTS)
def test_what_starts_as_an_error_announces_one(text: str) -> None:
    head = text[: outcome.HEAD].lower()
    assert not outcome._STARTS.match(head) or any(mark in head for mark in outcome._ANNOUNCED)


@given(TEXTS)
def test_a_call_is_hashed_without_its_stamps_and_ids(text: str) -> None:
    head = text[: outcome.CALL_HEAD]
    head = outcome._STAMPS.sub("#", head)
    if outcome._DIGIT.search(head) or "tmp" in head:
        head = outcome._CALL_IDS.sub("#", head)
    assert outcome.call_digest(text) == outcome.hash_of(head + text[outcome.CALL_HEAD :])


@given(TEXTS)
def test_a_result_is_hashed_without_what_is_volatile(text: str) -> None:
    masked = outcome._VOLATILE.sub("#", clip(text).strip())
    if len(masked) <= outcome.SHORT_ANSWER and outcome._DIGIT.search(masked):
        masked = outcome._IDS.sub("#", masked)
    assert outcome.result_digest(text) == outcome.hash_of(masked)


@given(
    st.lists(
        st.sampled_from(
            "sed -i -n perl -pi git apply checkout log patch tee > >> x.py /dev/null & 2>&1 open( 'w' a) .write_text( "
            "; mv cp rm touch mkdir \n INSERT UPDATE DROP CREATE cat ls echo done --all | python".split(" ")
        )
        | st.text(max_size=4),
        max_size=8,
    )
)
def test_a_command_that_changes_something_is_never_passed_over(parts: list[str]) -> None:
    command = " ".join(parts)
    edits = dict(roles._BY_COMMAND)["edit"].search(command) is not None
    assert not edits or roles._may_be("edit", command)


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


@given(
    st.dictionaries(st.sampled_from("abc"), st.just(0.0) | st.floats(0, 1), min_size=3),
    st.dictionaries(st.sampled_from("abc"), st.just(0.0) | st.floats(0, 1)),
    st.integers(1, 200),
)
def test_the_mean_of_nothing_is_nothing(now: dict[str, float], before: dict[str, float], steps: int) -> None:
    weight = (1 - indicators.DECAY ** (steps - 1)) / (1 - indicators.DECAY)
    assert indicators._means(now, before, steps) == {
        name: round((indicators.DECAY * weight * before.get(name, 0.0) + value) / (indicators.DECAY * weight + 1), 4)
        for name, value in now.items()
    }


class PlainWords:
    """The words of the newest steps, as two sets that take turns."""

    def __init__(self) -> None:
        self.new: set[int] = set()
        self.old: set[int] = set()

    def step(self, found: frozenset[str]) -> tuple[float, JSON]:
        places = [crc32(word.encode("utf-8", "replace")) % indicators.PLACES for word in found]
        share = sum(at in self.new | self.old for at in places) / len(places) if places else 0.0
        self.new |= {*places}
        if len(self.new) > indicators.MAX_WORDS:
            self.new, self.old = set(), self.new
        return share, {"new": _text(self.new), "old": _text(self.old)}


def _text(places: set[int]) -> str:
    bits = sum(1 << at for at in places)
    return b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "little")).decode()


@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 120)), max_size=12))
def test_words_are_remembered_as_two_sets_that_take_turns(steps: list[tuple[int, int]]) -> None:
    plain, memory = PlainWords(), None
    for start, count in steps:
        found = frozenset(f"word{at}" for at in range(start, start + count))
        kept = indicators._Words(memory, found)
        share, memory = kept.share(), kept.memory()
        assert (share, memory) == plain.step(found)


def test_a_pattern_of_any_case_is_written_in_lower_case() -> None:
    patterns: Mapping[str, Any] = vars(outcome)
    for one in patterns.values():
        if isinstance(one, outcome.AnyCase):
            assert not re.search(r"(?<!\\)[A-Z]", one._lower.pattern)


class MyStep(Step):
    """What a caller may derive."""


@pytest.mark.parametrize("cls", [Step, MyStep])
def test_a_changed_copy_is_of_the_same_class_and_as_frozen(cls: type[Step]) -> None:
    copy = evolve(cls(thought="one", reasoning="why"), thought="two")
    assert type(copy) is cls
    assert (copy.thought, copy.reasoning) == ("two", "why")
    with pytest.raises(FrozenInstanceError):
        copy.thought = "three"  # type: ignore[misc]  # that is the point


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Step has no field sense"):
        evolve(Step(), thought="x", sense="none")
