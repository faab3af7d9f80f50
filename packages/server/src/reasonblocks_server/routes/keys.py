"""Creates, lists and revokes the keys of an org."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from .. import keys
from ..auth import Caller
from ..server import Used
from ..values import Principal, Scope
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
    now = time.time()
    row, secret = keys.create_key(
        server,
        caller,
        name=given.name,
        scopes=given.scopes,
        project_id=given.project_id,
        expires=caller.expires if given.expires_s is None else now + given.expires_s,
        now=now,
    )
    return NewKey(**KeyBody.model_validate(row).model_dump(), key=secret)


@router.get("/keys", responses=problems())
def list_keys(caller: Admin, server: Used) -> KeyList:
    """List the keys of the org, or of the caller's project."""
    return KeyList(keys=[KeyBody.model_validate(row) for row in keys.visible_keys(server, caller)])


@router.delete("/keys/{key_id}", status_code=204, responses=problems(404))
def revoke_key(key_id: Annotated[str, Path(max_length=100)], caller: Admin, server: Used) -> Response:
    """Revoke a key. Other workers may accept it for up to 30 seconds."""
    keys.revoke_key(server, caller, key_id, time.time())
    return Response(status_code=204)
