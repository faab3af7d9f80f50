"""Decides what a trace state may hold: JSON that every checkpointer, file and wire can store and return."""

from __future__ import annotations

import json
import math
from typing import Any

from ._json import DEEPEST, JSON

LARGEST_INT = 2**63 - 1
"""The largest integer of msgpack and of database columns; the smallest is `-LARGEST_INT - 1`."""
MOST_CHARS = 65_536
"""The limit of one value, which is that of a whole snapshot; a number or a bracket counts as one."""


def storable(value: object, most: int = MOST_CHARS) -> JSON:
    """Return a copy of `value` in plain JSON types that shares nothing with it.

    Tuples become lists, and values of subclasses plain ones. Raises `ValueError` with the broken rule: integers of 64
    bits, finite floats, texts without halves of surrogate pairs, strings as keys, `DEEPEST` levels, and about
    `most` characters in all.
    """
    if type(value) is str and len(value) < most and value.isascii():  # nearly all, in a fifth of the time
        return value
    return _Copy(most).of(value, 0)


def storable_json(text: str) -> JSON:
    """Read JSON; NaN, infinities, and integers that no store holds become strings."""
    return _DECODER.decode(text)  # type: ignore[no-any-return]  # JSON by its own account


class _Copy:
    """Builds a copy with the methods of the built-in types, which a subclass cannot override."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int) -> None:
        self._left = self._most = most

    def of(self, value: Any, depth: int) -> JSON:
        self._spend(1)
        kind = type(value)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]  # one of the two
        if issubclass(kind, str):
            return self._text(value)
        if issubclass(kind, int):
            return _whole_number(int.__int__(value))
        if issubclass(kind, float):
            return _finite(float.__float__(value))
        if depth >= DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        if issubclass(kind, list):
            return [self.of(item, depth + 1) for item in list.__iter__(value)]
        if issubclass(kind, tuple):
            return [self.of(item, depth + 1) for item in tuple.__iter__(value)]
        if issubclass(kind, dict):
            return {self._key(key): self.of(item, depth + 1) for key, item in dict.items(value)}
        raise ValueError(f"it holds a value of type {kind.__name__}")

    def _key(self, key: object) -> str:
        if not issubclass(type(key), str):
            raise ValueError(f"it has a key of type {type(key).__name__}: use str(key)")
        return self._text(key)

    def _text(self, value: Any) -> str:
        text = str.__str__(value)
        self._spend(len(text))
        try:
            if not text.isascii():
                text.encode()
        except UnicodeEncodeError:
            raise ValueError("it has a string with an unpaired surrogate") from None
        return text

    def _spend(self, chars: int) -> None:
        self._left -= chars
        if self._left < 0:
            raise ValueError(f"it is longer than {self._most:,} characters")


def _whole_number(value: int) -> int:
    if not _fits(value):
        raise ValueError("it has an integer of more than 64 bits: use str(number)")
    return value


def _fits(value: int) -> bool:
    return -LARGEST_INT - 1 <= value <= LARGEST_INT


def _int_or_text(text: str) -> int | str:
    return number if _fits(number := int(text)) else text


_DECODER = json.JSONDecoder(parse_constant=str, parse_int=_int_or_text)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("it has a float that is not finite")
    return value
