"""The bodies of codebase memory. The id of the codebase is part of the path, and may contain "/"."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ..findings import CONTENT_CHARS, MOST_RECALLED, PATH_CHARS, QUERY_CHARS, TYPE_CHARS
from ..types import CodebaseSummary, Finding, RecalledFinding
from ._base import Answer, Request, Unit

MOST_STORED = 500
"""Findings of one request."""
MOST_LISTED = 1_000
"""Findings of one page of a list."""
Content = Annotated[str, Field(min_length=1, max_length=CONTENT_CHARS)]
FileHash = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
GitBlob = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40})?$")]


class _About(Request):
    """A finding without its content."""

    file_path: Annotated[str, Field(max_length=PATH_CHARS)] = ""
    finding_type: Annotated[str, Field(min_length=1, max_length=TYPE_CHARS)] = "note"
    metadata: dict[str, Any] | None = None
    file_hash: FileHash = ""
    git_blob: GitBlob = ""


class FindingRequest(_About):
    """A finding to store."""

    content: Content

    def finding(self) -> Finding:
        return Finding(**{**self.model_dump(), "metadata": self.metadata or {}})


class FindingsRequest(_About):
    """POST /findings/{id}: one finding, or `findings` instead, of which all or none are stored."""

    content: Content | None = None
    findings: Annotated[list[FindingRequest], Field(min_length=1, max_length=MOST_STORED)] | None = None

    def finding(self) -> Finding:
        """Return the one finding, which has a content."""
        return FindingRequest.model_validate(self.model_dump(exclude={"findings"}, exclude_none=True)).finding()


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

    @classmethod
    def of(cls, finding: Finding) -> WireFinding:
        return cls(**_fields(finding))


class WireRecalled(WireFinding):
    """A recalled finding."""

    score: Unit

    def recalled(self) -> RecalledFinding:
        return RecalledFinding(**{**self.model_dump(), "metadata": self.metadata or {}})

    @classmethod
    def of_recalled(cls, finding: RecalledFinding) -> WireRecalled:
        return cls(**_fields(finding), score=finding.score)


def _fields(finding: Finding) -> dict[str, Any]:
    shown = {name: getattr(finding, name) for name in WireFinding.model_fields}
    return {**shown, "metadata": dict(finding.metadata)}


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

    @classmethod
    def of(cls, summary: CodebaseSummary) -> WireCodebase:
        return cls(codebase_id=summary.codebase_id, findings=summary.findings, newest=summary.newest)


class CodebaseList(Answer):
    """GET /findings: the codebases of the key's org that have findings."""

    codebases: list[WireCodebase] = Field(default_factory=list)
