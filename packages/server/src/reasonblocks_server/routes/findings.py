"""Stores, recalls, lists and removes the findings of codebases: what agents noted about them for later runs.

The id of a codebase may contain any character. Percent-encoded, it may also end like a route: `/findings/a%2Fsearch`
is the codebase "a/search", and `/findings/a/search` searches the codebase "a".
"""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from reasonblocks.ports import FindingStore
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
)

from ..auth import Caller
from ..findings import CHANGING, STORE_SECONDS
from ..limits import ends_of
from ..server import Used
from ..serving import answer_codebases, answer_list, answer_recall, answer_store
from ..values import Principal
from ._common import MAX_ID_CHARS, NO_NUL, check_whole_org, problems

router = APIRouter(tags=["findings"])
Agent = Annotated[Principal, Caller(CHANGING)]
CodebaseId = Annotated[
    str, Path(min_length=1, max_length=MAX_ID_CHARS, pattern=NO_NUL, description="The id of a codebase.")
]
After = Annotated[str, Query(max_length=MAX_ID_CHARS, pattern=NO_NUL)]


@router.get("/findings", responses=problems())
async def list_codebases(server: Used, caller: Agent, request: Request) -> CodebaseList:
    """List the codebases of the key's org that have findings, by id."""
    return await server.findings.read(caller.org_id, partial(answer_codebases, org_id=caller.org_id), ends_of(request))


@router.post("/findings/{codebase_id:path}/search", responses=problems())
async def recall(
    codebase_id: CodebaseId, given: RecallRequest, server: Used, caller: Agent, request: Request
) -> RecallResponse:
    """Search the findings of a codebase; return the best first."""
    work = partial(answer_recall, org_id=caller.org_id, codebase_id=codebase_id, request=given)
    return await server.findings.read(caller.org_id, work, ends_of(request))


@router.post("/findings/{codebase_id:path}/invalidate", responses=problems())
async def invalidate(
    codebase_id: CodebaseId, given: InvalidateRequest, server: Used, caller: Agent, request: Request
) -> InvalidateResponse:
    """Remove the findings about files, those about files in folders, and single findings."""
    check_whole_org(caller)

    def work(store: FindingStore) -> InvalidateResponse:
        return server.findings.invalidate(caller.org_id, codebase_id, given, partial(server.audit, caller))

    return await server.findings.change(caller.org_id, work, ends_of(request))


@router.post("/findings/{codebase_id:path}", responses=problems(409))
async def store_findings(
    codebase_id: CodebaseId, given: FindingsRequest, server: Used, caller: Agent, request: Request
) -> FindingsResponse:
    """Store a finding, or up to 500 of them, all or none. A repeated finding replaces itself.

    Their secrets are masked. A codebase has at most 20,000 findings.
    """
    check_whole_org(caller)
    now = datetime.now(timezone.utc)
    work = partial(answer_store, org_id=caller.org_id, codebase_id=codebase_id, request=given, now=now)
    return await server.findings.change(caller.org_id, work, ends_of(request), STORE_SECONDS)


@router.get("/findings/{codebase_id:path}", responses=problems())
async def list_findings(
    codebase_id: CodebaseId,
    server: Used,
    caller: Agent,
    request: Request,
    after: After = "",
    limit: Annotated[int | None, Query(ge=1, le=MOST_LISTED)] = None,
) -> FindingList:
    """List findings by id, those after the id `after`. A page with a limit ends at 200 KB, too.

    `next` is the `after` of the next page, null at the end.
    """
    work = partial(answer_list, org_id=caller.org_id, codebase_id=codebase_id, after=after, limit=limit)
    return await server.findings.read(caller.org_id, work, ends_of(request))


@router.delete("/findings/{codebase_id:path}", responses=problems())
async def clear(codebase_id: CodebaseId, server: Used, caller: Agent, request: Request) -> ClearResponse:
    """Remove all findings of a codebase."""
    check_whole_org(caller)

    def work(store: FindingStore) -> ClearResponse:
        return server.findings.clear(caller.org_id, codebase_id, partial(server.audit, caller))

    return await server.findings.change(caller.org_id, work, ends_of(request))
