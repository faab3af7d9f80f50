"""Converts texts, numbers and JSON to values that both databases can store and index.

Neither stores unpaired surrogates, PostgreSQL stores no NUL characters and indexes at most 2,704 bytes of a row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from reasonblocks.util.json import MAX_INT, compact, storable_json
from reasonblocks.util.text import cut_with_hash, storable_text, whole

from ..values import Body

ID_BYTES = 500
"""The longest id. Four of them fit into the row of an index."""
NAME_BYTES = 300
TASK_CHARS = 2_000
"""The length of a task in its column. The event has the whole task."""
_Nested: TypeAlias = dict[str, Any] | list[Any] | tuple[Any, ...]
DEEPEST = 64
"""The most nesting levels of an event."""


def id_of(text: str) -> str:
    """Return the id as it is stored. A long one ends with its hash."""
    return (
        text
        if text.isalnum() and text.isascii() and len(text) < ID_BYTES
        else cut_with_hash(storable_text(text), ID_BYTES)
    )


def name_of(text: str) -> str:
    """Return a name as it is stored. A long one ends with its hash."""
    return cut_with_hash(storable_text(text), NAME_BYTES)


def name_in(value: object) -> str | None:
    """Return a text as a name; None for an empty text and for other values."""
    return name_of(value) if isinstance(value, str) and value else None


def number_in(value: object) -> float | None:
    """Return a finite number as a float; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def sum_of(numbers: Sequence[int]) -> int:
    """Return the sum, limited to the largest number that a column can store."""
    return min(sum(numbers), MAX_INT)


_NESTED = (dict, list, tuple)


def write_json(value: _Nested) -> str:
    """Return a list or an object as JSON. Raises `ValueError` for one that is nested too deeply."""
    _check_depth(value, DEEPEST)
    return whole(compact(value))


def read_json(text: str) -> Any:
    """Read JSON; NaN, infinities, and integers of more than 64 bits become strings."""
    return storable_json(text)


def body_in(text: str | None) -> Body:
    return read_json(text) if text else {}


def names_in(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text)) if text != "[]" else ()


def _check_depth(value: _Nested, left: int) -> None:
    if not left:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, _NESTED):
            _check_depth(item, left - 1)
