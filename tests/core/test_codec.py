"""Values are read from JSON by their types as they were written, and nothing is taken for what it is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum, IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.exceptions import SnapshotError
from reasonblocks.session.snapshot import decode, encode
from reasonblocks.types import TraceState
from reasonblocks.util.codec import Codec, Unreadable
from reasonblocks.util.json import storable
from tests.core.world import client, found, run, speaks, through_json

TEXTS = st.text(max_size=4)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | FLOATS | TEXTS
JSONS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2), max_leaves=3
)
SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    Any: JSONS, str: TEXTS, bool: st.booleans(), int: NUMBERS, float: FLOATS, NoneType: st.none()
}  # fmt: skip


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type."""
    kind, parts = get_origin(hint), get_args(hint)
    if hint in SIMPLE:
        return SIMPLE[hint]
    if kind in (Union, UnionType):
        return st.one_of(*map(values, parts))
    if kind is Literal:
        return st.sampled_from(parts)
    if kind is tuple:
        return st.lists(values(parts[0]), max_size=2).map(tuple) if ... in parts else st.tuples(*map(values, parts))
    if kind is not None:
        return st.dictionaries(TEXTS, values(parts[1]), max_size=2)
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    hints = get_type_hints(hint)
    names = [field.name for field in fields(hint)] if is_dataclass(hint) else hint._fields
    return st.builds(hint, **{name: values(hints[name]) for name in names})


@pytest.mark.parametrize("kind", [TraceState, RunStart, StepEvent, RunFinish])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_value_is_read_back_from_json_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    codec, value = Codec(kind), data.draw(values(kind))
    assert codec.read(json.loads(json.dumps(codec.write(value)))) == value


class Name(str):
    __slots__ = ()


class Level(IntEnum):
    HIGH = 3


class Row(list[Any]):
    """Refuses to be read."""

    def __iter__(self) -> Any:
        raise LookupError


def test_values_of_subclasses_are_written_as_plain_ones_and_none_is_shared() -> None:
    memory: Any = {Name("a"): Row([Level.HIGH, Name("b"), (1, 2)])}
    state = TraceState(trace_id=Name("r"), calls=Level.HIGH, memories={"mine": memory})
    written: Any = Codec(TraceState).write(state)
    assert [type(written["trace_id"]), type(written["calls"])] == [str, int]
    assert written["memories"] == {"mine": {"a": [3, "b", [1, 2]]}}
    inner = written["memories"]["mine"]
    assert [type(inner), type(inner["a"]), *map(type, inner)] == [dict, list, str]
    assert list(map(type, inner["a"])) == [int, str, list]
    inner["a"].clear()
    assert len(memory["a"]) == 3


def test_what_is_read_shares_nothing_with_the_json() -> None:
    given: dict[str, Any] = {"trace_id": "r", "memories": {"mine": {"a": [Name("b")]}}}
    state = Codec(TraceState, check=storable).read(given)
    given["memories"]["mine"]["a"].clear()
    assert state.memories == {"mine": {"a": ["b"]}}
    assert type(state.memories["mine"]["a"][0]) is str  # type: ignore[index, call-overload]


@pytest.mark.parametrize("value", [-1, 2**63])
def test_a_number_out_of_range_is_refused_with_the_range(value: int) -> None:
    with pytest.raises(Unreadable, match=r"^calls must be a whole number from 0 to 2\*\*63 - 1$"):
        Codec(TraceState, least=0).read({"trace_id": "r", "calls": value})


# ------------------------------------------------------------ one wrong leaf of a snapshot


@cache
def full() -> dict[str, Any]:
    """A snapshot where most fields hold something."""
    rb = client(*[speaks(f"Text {at}.", failure_type="loop") for at in range(6)], store=lambda one: found("e2-a"))
    session = rb.session(run_id="run")
    run(session, 5)
    state = replace(session.trace.state, memories={"mine": {"a": [1]}}, call_tokens=5)
    return through_json(encode(state))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    return [path] if items is None else [leaf for key, item in items for leaf in leaves(item, (*path, key))]


LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.sampled_from([0, 1, -1, 2**63, 2**70]), FLOATS, TEXTS
)
NAMED_OTHERWISE = {"account", "auxiliary_calls"}
"""The fields that errors about the bounds of an account, or about the calls together, name."""


def put(value: Any, path: tuple[Any, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    changed = {path[0]: put(value[path[0]], path[1:], leaf)}
    if isinstance(value, dict):
        return {**value, **changed}
    return [changed.get(at, item) for at, item in enumerate(value)]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    return at(value[path[0]], path[1:]) if path else value


@settings(max_examples=200, deadline=None)
@given(st.data(), LEAF)
def test_any_other_leaf_is_restored_as_it_is_or_refused_by_its_name(data: st.DataObject, leaf: Any) -> None:
    path = data.draw(st.sampled_from([path for path in leaves(full()) if path != ("version",)]))
    changed = put(full(), path, leaf)
    try:
        restored = encode(decode(changed))
    except SnapshotError as error:
        refused = error.field
    else:
        assert restored == changed
        assert isinstance(at(restored, path), bool) == isinstance(leaf, bool), "1 is no flag"
        return
    assert refused in NAMED_OTHERWISE.union(path)


@pytest.mark.parametrize(
    ("field", "value"), [("injections", ["bad"] * 99), ("metadata", {str(number): "bad" for number in range(99)})]
)
def test_a_list_or_an_object_is_read_to_its_first_fault(field: str, value: Any) -> None:
    seen = list[object]()

    def refuse(part: object) -> object:
        seen.append(part)
        if part == "bad":
            raise ValueError("must be good")
        return part

    with pytest.raises(Unreadable, match="must be good"):
        Codec(StepEvent, check=refuse).read({"run_id": "r", "step_index": 0, "timestamp": 0.0, field: value})
    assert seen.count("bad") == 1
