"""The bodies of codebase memory. The id of the codebase is part of the path, and may contain "/"."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from .._findings import CONTENT_CHARS, MOST_RECALLED, PATH_CHARS, QUERY_CHARS, TYPE_CHARS
from ..types import CodebaseSummary, Finding, RecalledFinding
from ._base import Answer, Request, Unit

MOST_STORED = 500
"""Findings of one request."""
MOST_LISTED = 1_000
"""Findings of one page of a list."""
FileHash = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
GitBlob = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40})?$")]


class FindingRequest(Request):
    """POST /findings/{id}."""

    content: Annotated[str, Field(min_length=1, max_length=CONTENT_CHARS)]
    file_path: Annotated[str, Field(max_length=PATH_CHARS)] = ""
    finding_type: Annotated[str, Field(min_length=1, max_length=TYPE_CHARS)] = "note"
    metadata: dict[str, Any] = Field(default_factory=dict)
    file_hash: FileHash = ""
    git_blob: GitBlob = ""

    def finding(self) -> Finding:
        return Finding(**self.model_dump())


class FindingsRequest(Request):
    """POST /findings/{id} with several findings, which are stored all or none."""

    findings: Annotated[list[FindingRequest], Field(min_length=1, max_length=MOST_STORED)]


class FindingsResponse(Answer):
    """The ids of the stored findings, in their order; `finding_id` is that of the first."""

    finding_id: str
    finding_ids: list[str] = Field(default_factory=list)


class RecallRequest(Request):
    """POST /findings/{id}/search."""

    query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARS)]
    top_k: Annotated[int, Field(ge=1, le=MOST_RECALLED)] = 5
    score_threshold: Unit = 0.25


class WireFinding(Answer):
    """A stored finding. Other servers may lack all fields but the first three."""

    content: str
    file_path: str = ""
    finding_type: str = "note"
    metadata: dict[str, Any] | None = None
    finding_id: str = ""
    created_at: str = ""
    file_hash: str = ""
    git_blob: str = ""

    def finding(self) -> Finding:
        return Finding(**{**self.model_dump(), "metadata": self.metadata or {}})


class WireRecalled(WireFinding):
    """A recalled finding."""

    score: Unit

    def recalled(self) -> RecalledFinding:
        return RecalledFinding(**{**self.model_dump(), "metadata": self.metadata or {}})


class RecallResponse(Answer):
    """The recalled findings, the best first; none is a normal answer."""

    results: list[WireRecalled] = Field(default_factory=list)


class FindingList(Answer):
    """GET /findings/{id}: findings by id. `next` is the `after` of the next page, null at the end."""

    findings: list[WireFinding] = Field(default_factory=list)
    next: str | None = None


class InvalidateRequest(Request):
    """POST /findings/{id}/invalidate: files or folders whose findings go, and single findings."""

    file_paths: Annotated[list[str], Field(max_length=10_000)] = Field(default_factory=list)
    finding_ids: Annotated[list[str], Field(max_length=10_000)] = Field(default_factory=list)


class InvalidateResponse(Answer):
    """The number of removed findings."""

    invalidated: int


class ClearResponse(Answer):
    """DELETE /findings/{id}."""

    status: str = "cleared"
    cleared: int = 0


class WireCodebase(Answer):
    """A codebase with findings."""

    codebase_id: str
    findings: int
    newest: str

    def summary(self) -> CodebaseSummary:
        return CodebaseSummary(**self.model_dump())


class CodebaseList(Answer):
    """GET /findings: the codebases of the key's org that have findings."""

    codebases: list[WireCodebase] = Field(default_factory=list)
