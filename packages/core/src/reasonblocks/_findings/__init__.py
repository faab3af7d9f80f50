"""The rules of findings: their limits and ids, the state of their files, and their form for a model."""

from __future__ import annotations

from ._check import (
    CONTENT_CHARS,
    MOST_FINDINGS,
    MOST_RECALLED,
    PATH_CHARS,
    QUERY_CHARS,
    TYPE_CHARS,
    checked,
    checked_codebase,
    checked_path,
    checked_query,
    finding_id,
)

__all__ = [
    "CONTENT_CHARS",
    "MOST_FINDINGS",
    "MOST_RECALLED",
    "PATH_CHARS",
    "QUERY_CHARS",
    "TYPE_CHARS",
    "checked",
    "checked_codebase",
    "checked_path",
    "checked_query",
    "finding_id",
]
