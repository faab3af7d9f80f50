"""Answers health checks: of the process, and of its database."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ..server import Used
from ._common import problems

router = APIRouter(tags=["health"])


@router.get("/health")
async def health(request: Request) -> dict[str, str]:
    """Return the version, while the process runs."""
    return {"status": "ok", "version": request.app.version}


@router.get("/ready", responses={503: problems()[503]})
async def ready(request: Request, server: Used) -> dict[str, str]:
    """Return the version, if the database answers."""
    await run_in_threadpool(server.storage.check)
    return {"status": "ok", "version": request.app.version}
