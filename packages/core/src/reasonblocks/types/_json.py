"""What may stand in a snapshot or on the wire: plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from ..text import EDGE, clip

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

DEEPEST = 32
"""Levels of a value that its canonical form shows."""
MOST_ITEMS = 1_000
"""Items of one list or object that its canonical form shows."""
FEW_ITEMS = 16
"""Items of an object that is shown the short way."""
_TEXTS, _TEXTS_AND_NUMBERS = frozenset({str}), frozenset({str, int})


def compact(value: JSON) -> str:
    """The compact form: no spaces, UTF-8 as it is, keys in their order."""
    return _COMPACT.encode(value)


def canonical(value: Any) -> str:
    """The compact form with sorted keys: equal values give equal text.

    Of any value: what is no JSON is shown as text; strings over 16,000 characters, long lists, deep levels are cut.
    """
    try:
        return _short(value) if _is_short(value) else _CANONICAL.encode(_pruned(value, 0))
    except ValueError:  # an int of more digits than Python prints
        return f'"{type(value).__name__}"'


def _is_short(value: Any) -> bool:
    """The arguments of most calls: a few names with texts and whole numbers."""
    return (
        type(value) is dict
        and 0 < len(value) <= FEW_ITEMS
        and {*map(type, value)} == _TEXTS
        and {*map(type, value.values())} <= _TEXTS_AND_NUMBERS
        and max(map(len, value)) <= 2 * EDGE
    )


def _short(value: dict[str, str | int]) -> str:
    """What the encoder makes of it, in half of the time."""
    items = [
        f"{encode_basestring(key)}:{encode_basestring(clip(item)) if type(item) is str else item}"
        for key, item in sorted(value.items())
    ]
    return f"{{{','.join(items)}}}"


def _pruned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clip(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth >= DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {_text(key): _pruned(item, depth + 1) for key, item in islice(value.items(), MOST_ITEMS)}
    if isinstance(value, (list, tuple)):
        return [_pruned(item, depth + 1) for item in islice(value, MOST_ITEMS)]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return clip(str(value))
    except Exception:  # noqa: BLE001 - whatever a foreign object's __str__ raises
        return type(value).__name__


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
