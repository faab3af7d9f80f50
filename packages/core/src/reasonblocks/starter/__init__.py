"""The patterns that come with the library: standing rules, and what helps in each kind of trouble."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from .._patterns import pattern_of
from ..types import Pattern

__all__ = ["FILES", "starter_patterns"]

FILES = ("rules", "contradiction", "loop", "unverified", "churn", "sprawl", "drift")
"""The standing rules, then a file for each failure type, in the order of the monitors' table.

JSON, as it is read whenever a client is made: all of it takes a millisecond, as TOML it would be three to ten.
"""


@cache
def starter_patterns() -> tuple[Pattern, ...]:
    """All of them, in the order of the files: of no org, ids prefixed `rb-`. Read once a process."""
    here = Path(__file__).parent
    told = [json.loads((here / f"{name}.json").read_text(encoding="utf-8")) for name in FILES]
    return tuple(pattern_of(pattern) for patterns in told for pattern in patterns)
