"""What enters the trace state is JSON that every store of it takes: checkpointers, files, databases."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError, SnapshotError
from reasonblocks.session.snapshot import decode, encode
from reasonblocks.types import FSMState, RunInfo, Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from reasonblocks.util.json import storable

LEVELS_AROUND = 8
"""Of a snapshot, around what a caller's code gives."""


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise LookupError("no text")

    __repr__ = __str__


class Number(int):
    def __int__(self) -> int:
        return 2**70

    __index__ = __int__


class Table(dict[Any, Any]):
    def items(self) -> Any:
        raise LookupError("no items")

    __iter__ = __len__ = items


class Row(list[Any]):
    def __iter__(self) -> Any:
        while True:
            yield self


class Liar:
    """It says that it is text."""

    __class__ = str  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise LookupError("no repr")


class Level(enum.IntEnum):
    HIGH = 3


def is_stored_everywhere(value: Any, depth: int = 0) -> bool:
    """The limits of msgpack and of strict JSON, by exact type."""
    kind = type(value)
    if depth > 32 + LEVELS_AROUND:
        return False
    if kind is dict:
        return all(type(key) is str and is_stored_everywhere(key, depth + 1) for key in value) and all(
            is_stored_everywhere(item, depth + 1) for item in value.values()
        )
    if kind is list:
        return all(is_stored_everywhere(item, depth + 1) for item in value)
    if kind is str:
        return not any("\ud800" <= char <= "\udfff" for char in value)
    if kind is int:
        return bool(-(2**63) <= value < 2**63)
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def nested(value: Any) -> Any:
    for _ in range(350):
        value = [value]
    return value


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**70]),
    st.builds(lambda: 10**5_000),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.complex_numbers(),
    st.builds(Text, st.text(max_size=5)),
    st.builds(Number, st.integers()),
    st.builds(Liar),
    st.sampled_from([Level.HIGH, FSMState.SLOW, float("nan"), "x" * 100_000, object(), len]),
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4).map(Row),
        st.dictionaries(st.one_of(st.text(st.characters(), max_size=5), st.integers(), st.none()), inner, max_size=4),
        st.dictionaries(st.text(max_size=5), inner, max_size=4).map(Table),
        st.builds(nested, inner),
    ),
    max_leaves=12,
)

READ = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4), st.builds(nested, inner)
    ),
    max_leaves=12,
)
"""What a framework reads from a model's answer: of plain containers, but with any value in them."""


class Says:
    name = "watcher"
    failure_type = "watched"

    def __init__(self, score: Any, memory: Any, evidence: Any) -> None:
        self.answer = (score, memory, evidence)

    def observe(self, step: Step, memory: Any, run: RunInfo) -> Any:
        return self.answer


@given(ANYTHING)
def test_a_storable_copy_is_what_it_was_made_of_or_is_refused(value: Any) -> None:
    try:
        copy = storable(value)
    except ValueError:
        return
    assert is_stored_everywhere(copy)
    assert json.loads(json.dumps(copy, allow_nan=False)) == copy == storable(copy)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(), st.lists, max_leaves=30))
def test_plain_json_is_storable_as_it_is(value: Any) -> None:
    assert storable(value) == value


def test_what_refers_to_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="levels deep"):
        storable(endless)


def test_what_doubles_at_every_level_is_refused_before_it_fills_the_memory() -> None:
    value: Any = "x"
    for _ in range(30):
        value = [value, value]
    with pytest.raises(ValueError, match="longer than"):
        storable(value)


@settings(deadline=None)  # the first step loads what steps need
@given(score=ANYTHING | st.floats(0, 1), memory=ANYTHING, evidence=ANYTHING | st.just(()))
def test_whatever_a_monitor_answers_the_state_can_be_stored_and_comes_back_equal(
    score: Any, memory: Any, evidence: Any
) -> None:
    with ReasonBlocks(monitors=[Says(score, memory, evidence)], strict=False) as rb:
        session = rb.session()
        for at in range(2):
            session.begin_step(StepInput(key=f"k{at}", completed=Step(thought="I look.") if at else None))
        assert_stored(session.trace.snapshot())


@settings(deadline=None)
@given(arguments=READ, tokens=LEAVES, thought=st.text(st.characters()))
def test_whatever_a_framework_tells_of_a_call_the_state_can_be_stored_and_comes_back_equal(
    arguments: Any, tokens: Any, thought: str
) -> None:
    with ReasonBlocks(strict=False, token_budget=2**63 - 1) as rb:
        session = rb.session(run_id=thought, task=thought)
        call = ToolCall(id=thought, name=thought, arguments=arguments)
        done = Step(thought=thought, tool_calls=(call,), tool_results=(ToolResult(call_id=thought, output=thought),))
        for at in range(3):
            decision = session.begin_step(StepInput(key=f"{thought}{at}", completed=done if at else None))
            usage = Usage(input=tokens, output=2**63 - 1)
            session.end_step(decision, StepOutcome(usage=usage, text=thought, tool_calls=(call,)))
            assert_stored(session.trace.snapshot())


def assert_stored(snapshot: dict[str, Any]) -> None:
    assert is_stored_everywhere(snapshot)
    assert json.loads(json.dumps(snapshot, allow_nan=False)) == snapshot
    assert encode(decode(snapshot)) == snapshot


@pytest.mark.parametrize("tokens", [2**63, 2**70])
def test_a_count_of_tokens_past_64_bits_is_no_count(tokens: int) -> None:
    assert Usage(input=tokens, output=1) == Usage(output=1)


def test_tokens_add_up_to_the_largest_count_that_is_stored() -> None:
    most = Usage(input=2**63 - 1, output=2**63 - 1)
    assert most.total == 2**63 - 1
    assert most + most == most


@pytest.mark.parametrize(
    "changed",
    [{"token_budget": 2**70}, {"total_tokens": 2**70}, {"calls": 2**70}, {"memories": {"watcher": nested(1)}}],
)
def test_a_snapshot_with_what_no_store_takes_is_refused(changed: dict[str, Any]) -> None:
    with ReasonBlocks() as rb, pytest.raises(SnapshotError):
        rb.session(snapshot={**rb.session().trace.snapshot(), **changed})


def test_a_monitors_name_that_is_text_in_name_only_is_refused_where_it_is_given() -> None:
    monitor = Says(0.1, None, ())
    monitor.name = Text("watcher")
    with pytest.raises(ConfigError, match="monitors"):
        ReasonBlocks(monitors=[monitor])


def test_a_monitors_failure_type_is_text() -> None:
    monitor = Says(0.1, None, ())
    monitor.failure_type = 2**70  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="failure_type"):
        ReasonBlocks(monitors=[monitor])


def test_a_budget_of_more_digits_than_python_prints_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigError, match="token_budget"):
        ReasonBlocks(token_budget=10**5_000)
