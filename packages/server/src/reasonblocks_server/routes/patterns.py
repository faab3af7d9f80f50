"""Reads and changes patterns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import JSONResponse, Response

from reasonblocks.types import Tier
from reasonblocks.util.text import preview

from ..auth import Caller
from ..errors import ApiError
from ..patterns import as_json
from ..server import Used
from ..values import Principal
from ._common import check_whole_org, problems

router = APIRouter(tags=["patterns"])
Reading = Annotated[Principal, Caller("read")]
Changing = Annotated[Principal, Caller("admin")]
IfMatch = Annotated[str, Header(alias="If-Match")]
NAMED_CHARS = 200
"""Characters of the ids of several patterns in the audit."""
_REVISION = re.compile(r'(?:W/)?"?(\d{1,15})"?')


@router.get("/patterns", responses=problems())
def patterns(
    server: Used, caller: Reading, tier: Tier | None = None, failure_type: str | None = None
) -> dict[str, Any]:
    """List the patterns of the key's org and the shared ones, by id."""
    found = server.patterns.list(caller.org_id, tier, failure_type)
    return {"patterns": [as_json(pattern) for pattern in found]}


@router.post("/patterns", status_code=201, responses=problems(409))
def add(server: Used, caller: Changing, body: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Add a pattern, or a list of at most 1,000. A pattern with the id of one of the org's replaces it."""
    check_whole_org(caller)
    given = body if isinstance(body, list) else body["patterns"] if isinstance(body.get("patterns"), list) else [body]
    added = server.patterns.add(caller.org_id, given)
    server.audit(caller, "pattern.add", _named([pattern.id for pattern in added]))
    return {"patterns": [as_json(pattern) for pattern in added]}


@router.get("/patterns/{pattern_id:path}", responses=problems(404))
def pattern(server: Used, caller: Reading, pattern_id: str) -> Response:
    """Return a pattern. The `ETag` is its revision."""
    return _answer(as_json(server.patterns.get(caller.org_id, pattern_id)))


@router.put("/patterns/{pattern_id:path}", responses=problems(404, 412))
def put(server: Used, caller: Changing, pattern_id: str, body: dict[str, Any], if_match: IfMatch = "") -> Response:
    """Replace a pattern, if its revision is that in `If-Match`."""
    check_whole_org(caller)
    found = server.patterns.put(caller.org_id, pattern_id, body, _revision(if_match))
    server.audit(caller, "pattern.put", pattern_id)
    return _answer(as_json(found))


@router.delete("/patterns/{pattern_id:path}", status_code=204, responses=problems(404, 412))
def remove(server: Used, caller: Changing, pattern_id: str, if_match: IfMatch = "") -> Response:
    """Delete a pattern. With `If-Match`, only if it has this revision."""
    check_whole_org(caller)
    server.patterns.remove(caller.org_id, pattern_id, _revision(if_match) if if_match else None)
    server.audit(caller, "pattern.delete", pattern_id)
    return Response(status_code=204)


def _named(ids: Sequence[str]) -> str:
    """Return the ids for the audit. For several, return their number and the first ids."""
    if len(ids) == 1:
        return ids[0]
    return f"{len(ids)} patterns: {preview(', '.join(ids), NAMED_CHARS)}"


def _revision(if_match: str) -> int:
    found = _REVISION.fullmatch(if_match.strip())
    if found is None:
        raise ApiError(412, "send the pattern's revision as If-Match")
    return int(found[1])


def _answer(body: dict[str, Any]) -> Response:
    return JSONResponse(body, headers={"ETag": f'"{body["revision"]}"'})
