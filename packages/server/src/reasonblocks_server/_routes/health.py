"""Reports whether the server lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from .. import __version__
from .._server import Used

router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> dict[str, str]:
    """Return the version of a server that lives."""
    return {"status": "ok", "version": __version__}


@router.get("/ready")
async def ready(server: Used) -> dict[str, str]:
    """Return the same if the database answers; 503 otherwise."""
    await run_in_threadpool(server.storage.check)
    return {"status": "ok", "version": __version__}
