"""Findings: what agents found out about a codebase, and noted for later runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..util.json import JSON

Freshness: TypeAlias = Literal["fresh", "stale", "unknown"]
"""A file compared with the time of the finding: unchanged, changed or gone, or not comparable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebase:
    """The scope of findings: the org, and the codebase's id, which may contain "/"."""

    org_id: str
    codebase_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A note about a codebase. Store `content` and, if it is about one file, `file_path`, relative to the checkout.

    `finding_type` is any short name, such as "note", "command" or "gotcha". The other fields are set when the finding
    is stored: its id, the time (ISO 8601, UTC), and the state of its file, `file_hash` (SHA-256 of its bytes) and, in
    a Git checkout, `git_blob` (the id of the blob with these bytes). They are empty if they are unknown.
    """

    content: str
    file_path: str = ""
    finding_type: str = "note"
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    finding_id: str = ""
    created_at: str = ""
    file_hash: str = ""
    git_blob: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledFinding(Finding):
    """A finding that was recalled: its `score` in [0, 1], higher is nearer to the query, and whether it is stale."""

    score: float = 0.0
    freshness: Freshness = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodebaseSummary:
    """A codebase that has findings: their number, and the time of the newest (ISO 8601, UTC)."""

    codebase_id: str
    findings: int
    newest: str
