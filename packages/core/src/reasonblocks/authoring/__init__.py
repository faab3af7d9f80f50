"""Patterns in files that people write: read with every fault named, written so that the same is read back."""

from __future__ import annotations

from ._near import Near, near_duplicates
from ._read import Authored, pattern_from, read_patterns
from ._write import as_jsonl, as_toml

__all__ = ["Authored", "Near", "as_jsonl", "as_toml", "near_duplicates", "pattern_from", "read_patterns"]
