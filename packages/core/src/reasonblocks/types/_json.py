"""What may stand in a snapshot or on the wire: plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)


def compact(value: JSON) -> str:
    """The compact form: no spaces, UTF-8 as it is, keys in their order."""
    return _COMPACT.encode(value)


def canonical(value: JSON) -> str:
    """The compact form with sorted keys: equal values give equal text."""
    return _CANONICAL.encode(value)
