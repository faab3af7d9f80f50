"""The starter library: standing rules, and a lesson for each kind of trouble."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from ...types import Pattern
from .. import pattern_of

__all__ = ["starter_patterns"]

_FILES = ("rules", "contradiction", "loop", "unverified", "churn", "sprawl", "drift")
"""The standing rules, then a file for each failure type, in the order of the monitors' table.

They are JSON because every new client reads them: that takes a millisecond, and three to ten as TOML.
"""


@cache
def starter_patterns() -> tuple[Pattern, ...]:
    """Return the patterns in the order of the files. They belong to no org, and their ids start with `rb-`."""
    here = Path(__file__).parent
    files = [json.loads((here / f"{name}.json").read_text(encoding="utf-8")) for name in _FILES]
    return tuple(pattern_of(pattern) for patterns in files for pattern in patterns)
