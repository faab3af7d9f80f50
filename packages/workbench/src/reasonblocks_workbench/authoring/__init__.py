"""Reads, checks and writes files of patterns that people author."""

from __future__ import annotations

from ._read import Authored, pattern_from, read_patterns
from ._warn import Near, fields_for_any, near_duplicates, standing_bytes, warnings
from ._write import as_jsonl, as_toml

__all__ = [
    "Authored",
    "Near",
    "as_jsonl",
    "as_toml",
    "fields_for_any",
    "near_duplicates",
    "pattern_from",
    "read_patterns",
    "standing_bytes",
    "warnings",
]
