"""Converts values to JSON that snapshots, files and the wire can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from .text import clip

if TYPE_CHECKING:
    JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
else:
    JSON = Any  # whoever reads the types of fields at run time could not resolve an alias that holds itself

DEEPEST = 32
"""The nesting levels in the canonical form of a value."""
MAX_ITEMS = 1_000
"""The items in the canonical form of one list or object."""
MAX_NESTED = 10_000
"""The lists and objects in the canonical form of a value."""


def is_number(value: object) -> TypeGuard[float]:
    """Return True for a finite number that is not a bool; an int too large for a float is finite, too."""
    return math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


def compact(value: JSON) -> str:
    """Return compact JSON: no spaces, no escapes of non-ASCII characters, keys in their order."""
    return _COMPACT.encode(value)


def retrieved_json(retrieved: Mapping[str, tuple[str, ...] | None]) -> dict[str, JSON]:
    """Return the retrieved ids by tier in JSON types."""
    return {tier: None if ids is None else list(ids) for tier, ids in retrieved.items()}


def canonical(value: Any) -> str:
    """Return compact JSON with sorted keys, so that equal values give equal text.

    Accepts any value: it shows as text what is not JSON, and cuts strings over 16,000 characters, long lists, deep
    levels, and all lists and objects after a number of them.
    """
    try:
        return _CANONICAL.encode(_pruned(value, 0, iter(range(MAX_NESTED))))
    except ValueError:  # an int of more digits than Python prints
        return f'"{type(value).__name__}"'


def _pruned(value: Any, depth: int, left: Iterator[int]) -> Any:
    if isinstance(value, str):
        return clip(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth >= DEEPEST or next(left, None) is None:
        return "..."
    if isinstance(value, Mapping):
        return {_text(key): _pruned(item, depth + 1, left) for key, item in islice(value.items(), MAX_ITEMS)}
    if isinstance(value, (list, tuple)):
        return [_pruned(item, depth + 1, left) for item in islice(value, MAX_ITEMS)]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return clip(str(value))
    except Exception:  # noqa: BLE001 - whatever a foreign object's __str__ raises
        return type(value).__name__


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


MAX_INT = 2**63 - 1
"""The largest integer of msgpack and of database columns; the smallest is `-MAX_INT - 1`."""
MAX_CHARS = 65_536
"""The limit of one value, the same as of a whole snapshot. A number or a bracket counts as one character."""


def storable(value: object, most: int = MAX_CHARS) -> JSON:
    """Return a copy of `value` in plain JSON types that shares nothing with it.

    Tuples become lists, and values of subclasses plain ones. Raises `ValueError` with the broken rule: integers of 64
    bits, finite floats, texts without unpaired surrogates, strings as keys, `DEEPEST` levels, and about
    `most` characters in all.
    """
    return _Copy(most).of(value, 0)


def replace_surrogates(value: JSON) -> JSON:
    """Return the value without halves of surrogate pairs (texts cut inside an emoji), which UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {str(replace_surrogates(key)): replace_surrogates(item) for key, item in value.items()}
    return value


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
    return -MAX_INT - 1 <= value <= MAX_INT


def _int_or_text(text: str) -> int | str:
    return number if _fits(number := int(text)) else text


_DECODER = json.JSONDecoder(parse_constant=str, parse_int=_int_or_text)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("it has a float that is not finite")
    return value
