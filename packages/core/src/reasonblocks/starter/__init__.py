"""Contains the patterns that ship with the library: standing rules, and advice for each kind of trouble."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from .._patterns import pattern_of
from ..types import Pattern

__all__ = ["FILES", "starter_patterns"]

FILES = ("rules", "contradiction", "loop", "unverified", "churn", "sprawl", "drift")
"""The standing rules, then one file for each failure type, in the order of the monitors' table.

They are JSON because every new client reads them: all of it takes a millisecond, as TOML three to ten.
"""


@cache
def starter_patterns() -> tuple[Pattern, ...]:
    """Return all of them in the order of the files, without an org, with ids that begin with `rb-`. Cached."""
    here = Path(__file__).parent
    contents = [json.loads((here / f"{name}.json").read_text(encoding="utf-8")) for name in FILES]
    return tuple(pattern_of(pattern) for patterns in contents for pattern in patterns)
