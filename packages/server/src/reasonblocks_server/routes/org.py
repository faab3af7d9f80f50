"""Shows and changes the retention of an org, and erases an org."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from ..auth import Caller
from ..server import Used
from ..values import MAX_RETENTION_DAYS, Principal
from ._common import Given, check_whole_org, problems

router = APIRouter(tags=["org"])
Admin = Annotated[Principal, Caller("admin")]


class OrgGiven(Given):
    """The days after which runs are deleted."""

    retention_days: int = Field(ge=1, le=MAX_RETENTION_DAYS)


class Org(BaseModel):
    """An org."""

    org_id: str
    retention_days: int


class Erased(BaseModel):
    """The number of erased runs."""

    erased: int


@router.get("/org", responses=problems())
def show_org(caller: Admin, server: Used) -> Org:
    """Show the org of the key."""
    return Org.model_validate(server.storage.orgs.get(caller.org_id))


@router.put("/org", responses=problems(400))
def put_org(given: OrgGiven, caller: Admin, server: Used) -> Org:
    """Change the retention of the org."""
    check_whole_org(caller)
    server.storage.orgs.put(caller.org_id, given.retention_days)
    server.audit(caller, "org.put", f"retention_days {given.retention_days}")
    return Org(org_id=caller.org_id, retention_days=given.retention_days)


@router.delete("/org", responses=problems())
def erase_org(caller: Admin, server: Used) -> Erased:
    """Erase all data of the org: its runs, patterns, findings, settings and keys."""
    check_whole_org(caller)
    keys = server.storage.keys.list(caller.org_id)
    server.patterns.erase(caller.org_id)
    server.findings.erase(caller.org_id)
    erased = server.storage.orgs.erase(caller.org_id)
    for key in keys:
        server.auth.forget(key.key_id)
    server.audit(caller, "org.erase", f"{erased} runs")
    return Erased(erased=erased)
