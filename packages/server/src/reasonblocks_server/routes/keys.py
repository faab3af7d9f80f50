"""Creates, lists and revokes the keys of an org."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from ..auth import Caller
from ..errors import ApiError
from ..server import Used
from ..values import KeyRow, Principal, Scope
from ._common import NO_NUL, Given, problems

router = APIRouter(tags=["keys"])
Admin = Annotated[Principal, Caller("admin")]
MAX_LIFE_SECONDS = 10 * 365 * 86_400


class KeyGiven(Given):
    """A key to create. Its scopes must be among those of the caller's key.

    Without `expires_s`, it never expires, or when the caller's key does; it cannot be valid for longer than that.
    """

    name: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    scopes: list[Scope] = Field(min_length=1, max_length=5)
    project_id: str | None = Field(default=None, min_length=1, max_length=200, pattern=NO_NUL)
    expires_s: int | None = Field(default=None, ge=1, le=MAX_LIFE_SECONDS)


class KeyBody(BaseModel):
    """A key without its secret. Times are seconds since the epoch."""

    model_config = ConfigDict(from_attributes=True)

    key_id: str
    name: str
    scopes: list[Scope]
    project_id: str | None
    created: float
    expires: float | None
    revoked: float | None
    used: float | None
    refused: float | None


class NewKey(KeyBody):
    """A new key. This answer alone contains its text."""

    key: str


class KeyList(BaseModel):
    """The keys of an org."""

    keys: list[KeyBody]


@router.post("/keys", status_code=201, responses=problems(400))
def make_key(given: KeyGiven, caller: Admin, server: Used) -> NewKey:
    """Create a key for the same org. A key of one project can create keys for that project only."""
    if beyond := sorted({*given.scopes} - caller.scopes):
        raise ApiError(403, f"the key lacks the scopes {', '.join(beyond)}, so it cannot give them to another key")
    project = given.project_id or caller.project_id
    if caller.project_id not in (None, project):
        raise ApiError(
            403, f"the key belongs to the project {caller.project_id!r}, and can create keys for that project only"
        )
    now = time.time()
    expires = caller.expires if given.expires_s is None else now + given.expires_s
    if caller.expires is not None and expires is not None and expires > caller.expires:
        left = int(caller.expires - now)
        raise ApiError(403, f"the key expires in {left} s, so it can create no key that is valid for longer")
    row, secret = server.storage.keys.add(
        caller.org_id,
        name=given.name,
        scopes=tuple(dict.fromkeys(given.scopes)),
        project_id=project,
        expires=expires,
        now=now,
    )
    server.auth.forget(row.key_id)
    server.audit(caller, "key.add", f"{row.key_id} {' '.join(row.scopes)}")
    return NewKey(**KeyBody.model_validate(row).model_dump(), key=secret)


@router.get("/keys", responses=problems())
def list_keys(caller: Admin, server: Used) -> KeyList:
    """List the keys of the org, or of the caller's project."""
    rows = server.storage.keys.list(caller.org_id)
    return KeyList(keys=[KeyBody.model_validate(row) for row in rows if _is_seen(caller, row)])


@router.delete("/keys/{key_id}", status_code=204, responses=problems(404))
def revoke_key(key_id: Annotated[str, Path(max_length=100)], caller: Admin, server: Used) -> Response:
    """Revoke a key. Other workers may accept it for up to 30 seconds."""
    rows = server.storage.keys.list(caller.org_id)
    found = next((row for row in rows if row.key_id == key_id and _is_seen(caller, row)), None)
    if found is None:
        raise ApiError(404, f"there is no key {key_id!r}")
    if server.storage.keys.revoke(caller.org_id, key_id, time.time()):
        server.audit(caller, "key.revoke", key_id)
    server.auth.forget(key_id)
    return Response(status_code=204)


def _is_seen(caller: Principal, row: KeyRow) -> bool:
    return caller.project_id in (None, row.project_id)
