"""What a caller's store or an evaluator answers is checked where it enters: the state stays small, plain JSON."""

from __future__ import annotations

import json
import time
from collections import UserDict
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.exceptions import BadAnswer, ConfigError
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace, Evaluation, Pattern, StepInput
from tests.core.test_snapshot import HOSTILE, MOST, Greedy, hostile_step
from tests.core.world import begin, called, client, code_bytes, found, hanging, pattern, run, speaks, through_json

FIELDS = {"instruction": "always", "observation": "o", "recommended_action": "a", "diagnosis": "d",
          "intervention": "i", "anti_pattern": "n"}  # fmt: skip
LONG = ["x" * 201, "数" * 67, "\x00" * 34, "a \ud800 half", "x" * 1_000_000]
NO_NAMES: list[Any] = ["", None, 5, b"bytes", ["list"], *LONG]
NO_GATES: list[Any] = ["0.5", float("nan"), []]
NO_STATS: list[Any] = [None, {"recovered": "many"}]
NO_FIELDS: list[Any] = [None, "text", []]
BAD_PATTERNS: list[dict[str, Any]] = [
    *({"id": value} for value in NO_NAMES),
    *({"failure_type": value} for value in NO_NAMES if value is not None),
    *({"gate_threshold": value} for value in NO_GATES),
    *({"revision": value} for value in ("1", None, 1.5)),
    *({"fields": value} for value in NO_FIELDS),
    *({"stats": value} for value in NO_STATS),
    *({"org_id": value} for value in (5, "x" * 1_000)),
    *({"kinds": value} for value in (None, "waiting", (5,))),
    {"tier": "e4"},
    {"tier": ["e3"]},
]


def bad(changes: dict[str, Any]) -> ETrace:
    return ETrace(pattern=replace(pattern("e3-bad"), **changes))


@pytest.mark.parametrize("changes", BAD_PATTERNS, ids=lambda changes: repr(changes)[:40])
def test_a_pattern_that_cannot_be_kept_is_left_out_as_a_fault_of_the_store(changes: dict[str, Any]) -> None:
    session = client(store=lambda request: [bad(changes), *found("e3-good")], strict=False).session()
    run(session, 1)
    assert (session.step_log[0].pattern_ids, session.faults) == (("e3-good",), {"the pattern store": 1})


@pytest.mark.parametrize("changes", BAD_PATTERNS[:3], ids=lambda changes: repr(changes)[:40])
def test_where_no_pattern_can_be_kept_the_store_is_unavailable(changes: dict[str, Any]) -> None:
    session = client(store=lambda request: [bad(changes)], strict=False).session()
    run(session, 1)
    assert (session.step_log[0].skipped_reason, session.faults) == ("unavailable", {"the pattern store": 1})


def test_with_strict_a_pattern_that_cannot_be_kept_is_raised() -> None:
    session = client(store=lambda request: [*found("e3-good"), bad({"id": 5})]).session()
    with pytest.raises(BadAnswer, match="a pattern's id"):
        run(session, 1)


@pytest.mark.parametrize("name", ["x" * 200, "数" * 66, "🤖" * 50, "a 'name' with blanks"])
def test_an_id_of_200_bytes_is_kept(name: str) -> None:
    session = client(store=lambda request: [ETrace(pattern=replace(pattern("e3-a"), id=name))]).session()
    run(session, 1)
    assert session.step_log[0].pattern_ids == (name,)


ANYTHING = st.none() | st.integers() | st.floats() | st.binary() | st.text() | st.lists(st.integers(), max_size=2)
NAMES = (
    st.text(st.characters(), max_size=20)
    | st.builds(
        lambda one, times: one * times, st.sampled_from(["x", "数", "\x00", '"', "🤖", "\ud800"]), st.integers(1, 300)
    )
    | st.just("x" * 1_000_000)
    | ANYTHING
)
TEXTS = st.sampled_from([*(text[:9_000] for text in HOSTILE.values()), "do this"])
PATTERNS = st.builds(
    Pattern,  # of a store that keeps no promise
    id=NAMES,
    tier=st.sampled_from(["e1", "e2", "e3"]) | NAMES,
    fields=st.fixed_dictionaries(dict.fromkeys(FIELDS, TEXTS)) | ANYTHING,
    org_id=st.sampled_from([None, "default"]) | NAMES,
    failure_type=st.sampled_from([None, "loop"]) | NAMES,
    gate_threshold=st.none() | ANYTHING,
    revision=st.integers() | ANYTHING,
    stats=st.dictionaries(st.sampled_from(["recovered", "not_recovered"]), ANYTHING) | ANYTHING,
)
USABLE = st.builds(
    lambda tier, name: Pattern(id=name, tier=tier, fields=FIELDS, org_id="default" if tier == "e1" else None),
    st.sampled_from(["e1", "e2", "e3"]),
    st.text(min_size=1, max_size=20),
)
TRACES = st.builds(ETrace, pattern=PATTERNS | USABLE, similarity=st.just(1.0) | ANYTHING) | ANYTHING


@given(answers=st.lists(TRACES, max_size=8))
def test_whatever_a_store_gives_the_snapshot_is_small_plain_and_the_state_itself(answers: list[Any]) -> None:
    spoken = [speaks(f"Text {at}. Look.", failure_type=f"loop-{at}") for at in range(8)]
    rb = client(*spoken, store=lambda request: answers, strict=False)
    session = rb.session(run_id="run")
    run(session, 7)
    assert_plain(rb, session)


def assert_plain(rb: Any, session: Any) -> None:
    snapshot = session.trace.snapshot()
    json.dumps(snapshot, ensure_ascii=False, allow_nan=False).encode()
    assert code_bytes(snapshot) <= MOST
    again = rb.session(snapshot=through_json(snapshot)).trace.state
    assert replace(again, last=None) == replace(session.trace.state, last=None)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_longest_ids_beside_the_longest_steps_stay_under_64_kb(text: str) -> None:
    def many(request: Retrieve) -> list[ETrace]:
        org = "default" if request.tier == "e1" else None
        ids = [f"{request.tier}-{len(request.texts)}-{at:03}".ljust(200, "x") for at in range(32)]
        fields = dict.fromkeys(FIELDS, text[:9_000] if request.tier != "e3" else text[:100] + "rule")
        return [ETrace(pattern=Pattern(id=one, tier=request.tier, fields=fields, org_id=org)) for one in ids]

    name = "m".ljust(200, "x")
    said = [
        speaks(f"{at} {text[:2_000]}", *(f"{number}".ljust(100, "x") for number in range(10)),
               failure_type=f"{at}".ljust(200, "x"), monitor=name, pattern_id=f"p{at}".ljust(200, "x"))
        for at in range(12)
    ]  # fmt: skip
    rb = client(
        *said, store=many, standing_rules="run", second_look="always",
        monitors=[Greedy(f"greedy-{at}") for at in range(2)],
    )  # fmt: skip
    session = rb.session(task=text)
    largest = 0
    for number in range(12):
        completed = hostile_step(text, number - 1) if number else None
        decision = session.begin_step(StepInput(key=f"{number}{text}", completed=completed, default_model="m"))
        session.end_step(decision, called(number))
        largest = max(largest, code_bytes(session.trace.snapshot()))
    assert largest <= MOST


BAD_EVALUATIONS: list[dict[str, Any]] = [
    *({kind: value} for kind in ("failure_type", "pattern_id", "monitor", "injection_path") for value in NO_NAMES[2:]),
    *({"fired": (value,)} for value in NO_NAMES),
    {"fired": "loop"},
    {"fired": tuple(map(str, range(100)))},
    {"scores": {f"m{at}": 0.5 for at in range(100)}},
    {"scores": {5: 0.5}},
    {"scores": {"m": Decimal("0.5")}},
    {"scores": None},
    {"composite": 10**400},
]


@pytest.mark.parametrize("changes", BAD_EVALUATIONS, ids=lambda changes: repr(changes)[:60])
def test_an_evaluation_that_cannot_be_kept_is_a_fault_of_the_evaluator(changes: dict[str, Any]) -> None:
    said = replace(speaks("Look. Here."), **changes)
    session = client(said, strict=False).session()
    run(session, 2)
    assert (session.step_log[1].gate_decision, session.faults) == ("unavailable", {"the evaluator": 1})


@pytest.mark.parametrize("score", [numpy.float32(0.5), Fraction(1, 2), 1])
def test_a_score_of_any_kind_of_number_is_kept_as_a_plain_float(score: Any) -> None:
    rb = client(Evaluation(scores={"m": score}, composite=score))
    session = rb.session()
    run(session, 2)
    assert type(session.trace.snapshot()["last"]["composite"]) is float  # type: ignore[index, call-overload]
    assert_plain(rb, session)


@pytest.mark.parametrize("field", ["id", "failure_type", "org_id"])
@pytest.mark.parametrize("name", LONG, ids=lambda name: repr(name)[:20])
def test_a_name_that_no_session_would_keep_is_refused_where_a_pattern_is_added(field: str, name: str) -> None:
    changes: dict[str, Any] = {field: name}
    with pytest.raises(ConfigError, match="200 bytes"):
        LocalStore(patterns=[replace(pattern("e3-a"), **changes)])


@pytest.mark.parametrize("name", ["x" * 200, "数" * 66, "🤖" * 50, "a 'name' with blanks"])
def test_a_name_that_a_store_of_ours_takes_is_one_that_a_session_keeps(name: str) -> None:
    lesson = replace(pattern("e3-a"), id=name, failure_type=name, org_id=name)
    session = ReasonBlocks(strict=True, org_id=name, pattern_store=LocalStore(patterns=[lesson])).session()
    run(session, 1)
    assert session.step_log[0].pattern_ids == (name,)


class Fields(UserDict[str, Any]):
    """The mapping of a store that does as it likes whenever it is read."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__(FIELDS)
        self._read = read

    def __getitem__(self, name: str) -> Any:
        return self._read(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self._read(name)


def raising(error: BaseException) -> Callable[[str], Any]:
    def read(name: str) -> Any:
        raise error

    return read


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), StopIteration(), ZeroDivisionError()], ids=repr)
def test_a_pattern_whose_fields_raise_is_left_out_as_a_fault_of_the_store(error: BaseException) -> None:
    answer = [bad({"fields": Fields(raising(error))}), *found("e3-good")]
    session = client(store=lambda request: answer, strict=False).session()
    run(session, 1)
    assert (session.step_log[0].pattern_ids, session.faults) == (("e3-good",), {"the pattern store": 1})


def test_fields_that_hang_have_the_time_of_the_store() -> None:
    with hanging() as hang:
        session = client(store=lambda request: [bad({"fields": Fields(hang)})], step_deadline_ms=120).session()
        started = time.monotonic()
        run(session, 1)
        assert time.monotonic() - started < 1.0
    assert session.step_log[0].skipped_reason == "unavailable"


def test_fields_are_read_as_the_texts_that_they_hold() -> None:
    class Loud(str):
        __slots__ = ()

        def __getitem__(self, at: Any) -> Any:
            raise SystemExit

    answer = [bad({"fields": {"instruction": Loud("always look"), "more": 5}})]
    session = client(store=lambda request: answer).session()
    assert "always look" in begin(session, 0).guidance
