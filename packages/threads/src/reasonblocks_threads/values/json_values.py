"""The JSON that a field of a value accepts: numbers and flags are never made of texts, nor texts of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, Strict

from reasonblocks.util.text import whole

JSON: TypeAlias = dict[str, Any]

DEEPEST = 32
"""Levels of nested JSON."""
MOST = 2**53
"""The largest whole number; also the most that a cost may be, so that sums stay finite."""


class Malformed(ValueError):
    """Plain JSON that is not the value that it should be."""


def plain(value: object, name: str = "it") -> JSON:
    """Return a copy of a mapping that has only what JSON keeps. Raises `Malformed` for anything else, such as NaN.

    Unpaired surrogates, which no store can hold, become question marks.
    """
    if _is_deep(value):
        raise Malformed(f"{name} is nested more than {DEEPEST} levels deep")
    try:
        found = json.loads(whole(json.dumps(value, allow_nan=False, ensure_ascii=False)))
    except (TypeError, ValueError, RecursionError) as exc:
        raise Malformed(f"{name} is no plain JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise Malformed(f"{name} is {repr(value)[:80]}, not an object")
    return found


def _is_deep(value: object) -> bool:
    """Return True for nesting that later calls, deeper in the stack, might fail to encode."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()


def _plain(value: object) -> JSON:
    return plain(value)  # a validator gets no second argument


def _or_empty(value: object) -> object:
    return "" if value is None else value


Whole: TypeAlias = Annotated[int, Strict()]
Real: TypeAlias = Annotated[float, Strict()]
"""A number that may be infinite."""
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=MOST)]
"""A whole number from 0 on that every JSON reader keeps exactly."""
Number: TypeAlias = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Cost: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=MOST)]
Share: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1)]
Flag: TypeAlias = Annotated[bool, Strict()]
Text: TypeAlias = Annotated[str, Strict()]
"""No bytes, which pydantic would decode."""
Words: TypeAlias = Annotated[Text, BeforeValidator(_or_empty)]
"""A text, "" for null."""
Plain: TypeAlias = Annotated[Mapping[str, object], BeforeValidator(_plain)]
