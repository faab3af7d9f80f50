"""The rules of findings: their limits and ids, the state of their files, and their form for a model."""

from __future__ import annotations

from ._check import (
    CONTENT_CHARS,
    MOST_FINDINGS,
    MOST_RECALLED,
    PATH_CHARS,
    QUERY_CHARS,
    TYPE_CHARS,
    check_finding,
    checked_codebase,
    checked_finding_id,
    checked_path,
    checked_query,
    finding_id,
)
from ._files import FILE_BYTES, Checkout, Comparison
from ._shown import recalled_text

__all__ = [
    "CONTENT_CHARS",
    "FILE_BYTES",
    "MOST_FINDINGS",
    "MOST_RECALLED",
    "PATH_CHARS",
    "QUERY_CHARS",
    "TYPE_CHARS",
    "Checkout",
    "Comparison",
    "check_finding",
    "checked_codebase",
    "checked_finding_id",
    "checked_path",
    "checked_query",
    "finding_id",
    "recalled_text",
]
