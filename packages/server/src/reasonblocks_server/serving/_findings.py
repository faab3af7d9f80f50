"""Answers requests for the findings of codebases from any store: computes what a client must not choose."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from reasonblocks.exceptions import ConfigError
from reasonblocks.findings import check_finding, checked_codebase, checked_path, finding_id
from reasonblocks.masking import masked_finding, without_secrets
from reasonblocks.ports import FindingStore
from reasonblocks.types import Codebase, Finding
from reasonblocks.wire import (
    MOST_LISTED,
    ClearResponse,
    CodebaseList,
    FindingList,
    FindingsRequest,
    FindingsResponse,
    InvalidateRequest,
    InvalidateResponse,
    RecallRequest,
    RecallResponse,
    WireCodebase,
    WireFinding,
    WireRecalled,
)

PAGE_BYTES = 200_000
"""Bytes of the findings of a page, whose client may read no more than 250 KB; it has one finding at least."""
WHOLE_BYTES = 5_000_000
"""The same for a list without a limit: its client may know no pages, and gets as much as it may send."""
AT_ONCE = 100
"""Findings that are read at once for a list."""


def answer_store(
    store: FindingStore, org_id: str, codebase_id: str, request: FindingsRequest, now: datetime
) -> FindingsResponse:
    """Mask and store the given findings, all or none. Raises `ConfigError` with the field, and as the store."""
    codebase = checked_codebase(org_id, codebase_id)
    if request.findings is None:
        if request.content is None:
            raise ConfigError("content", None, "must be given, or several findings as `findings`")
        kept = [_kept(codebase, request.finding(), now)]
    elif request.content is not None:
        raise ConfigError("findings", f"{len(request.findings)} and content", "must not be given with a content")
    else:
        kept = [_kept(codebase, one.finding(), now, f"findings.{at}.") for at, one in enumerate(request.findings)]
    ids = store.put(codebase, kept)
    return FindingsResponse(finding_id=ids[0], finding_ids=list(ids))


def _kept(codebase: Codebase, finding: Finding, now: datetime, place: str = "") -> Finding:
    """Return a given finding as it is stored."""
    try:
        kept = check_finding(masked_finding(check_finding(finding)))
    except ConfigError as exc:
        raise ConfigError(f"{place}{exc.name}", exc.value, exc.rule) from exc
    return replace(kept, finding_id=finding_id(codebase, kept), created_at=now.isoformat(timespec="seconds"))


def answer_recall(store: FindingStore, org_id: str, codebase_id: str, request: RecallRequest) -> RecallResponse:
    """Search a codebase."""
    codebase = checked_codebase(org_id, codebase_id)
    found = store.search(codebase, request.query, top_k=request.top_k, score_threshold=request.score_threshold)
    return RecallResponse(results=[WireRecalled.of_recalled(finding) for finding in found])


def answer_list(store: FindingStore, org_id: str, codebase_id: str, *, after: str, limit: int | None) -> FindingList:
    """Return a page, or without a limit as much as fits into one answer."""
    codebase = checked_codebase(org_id, codebase_id)
    most, room = (MOST_LISTED, WHOLE_BYTES) if limit is None else (limit, PAGE_BYTES)
    answer = FindingList()
    while True:
        found = store.page(codebase, after=after, limit=min(AT_ONCE, most + 1 - len(answer.findings)))
        for finding in found:
            item = WireFinding.of(finding)
            room -= len(item.model_dump_json().encode())
            if len(answer.findings) == most or (room < 0 and answer.findings):
                answer.next = after
                return answer
            answer.findings.append(item)
            after = finding.finding_id
        if not found:
            return answer


def answer_invalidate(
    store: FindingStore, org_id: str, codebase_id: str, request: InvalidateRequest
) -> InvalidateResponse:
    """Remove the findings about files and folders, and single findings."""
    codebase = checked_codebase(org_id, codebase_id)
    paths = [_path(path) for path in request.file_paths]
    return InvalidateResponse(invalidated=store.remove(codebase, finding_ids=request.finding_ids, file_paths=paths))


def _path(given: str) -> str:
    """Return a path as it was stored. Raises `ConfigError` for the root, which would stand for no file."""
    path = checked_path(without_secrets(given))
    if given and not path:
        raise ConfigError("file_paths", given, "must be a file, or a folder below the root")
    return path


def answer_clear(store: FindingStore, org_id: str, codebase_id: str) -> ClearResponse:
    """Remove all findings of a codebase."""
    return ClearResponse(cleared=store.clear(checked_codebase(org_id, codebase_id)))


def answer_codebases(store: FindingStore, org_id: str) -> CodebaseList:
    """List the codebases of an org."""
    return CodebaseList(codebases=[WireCodebase.of(summary) for summary in store.codebases(org_id)])
