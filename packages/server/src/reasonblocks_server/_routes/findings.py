"""Refuses requests for the memory of codebases, which this server does not have."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter

from .._auth import Caller
from .._errors import ApiError
from .._values import Principal

router = APIRouter(include_in_schema=False)


@router.api_route("/findings/{rest:path}", methods=["GET", "POST", "DELETE"])
async def findings(caller: Annotated[Principal, Caller("evaluate")], rest: str) -> None:
    """Refuse the request with the reason."""
    raise ApiError(404, "this server has no memory of codebases")
