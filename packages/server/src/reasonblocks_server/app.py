"""Builds the web application: its parts, its routes, its limits, and the form of its errors."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reasonblocks.exceptions import ConfigError, EventError, StoreError, StoreFull, Unavailable
from reasonblocks.util.files import make_folder

from . import __version__, routes, ui
from ._counting import Counting
from ._evaluations import NoteTakers, OrgEvaluations
from ._shares import SharedPool
from ._summarising import Summarising
from .auth import SCOPE_OF, Auth
from .errors import ApiError, StorageUnavailable
from .findings import Findings
from .limits import SAFE_HEADERS, VERSION_PREFIX, Bodies, InFlight, Paths, SafeHeaders, decode_path_params, refusal
from .live import Live
from .patterns import Patterns
from .routes.stream import ends_streams
from .server import Migrating, Server, Sweeping
from .settings import Settings
from .storage import Storage
from .threads import OrgThreads, store_of
from .values import Scope

POOL, SHARE = 4, 2
"""Threads of a worker for evaluations of many steps, and those of one org."""
RETRY = {"Retry-After": "1"}


def create_app(settings: Settings) -> FastAPI:
    """Return the server as an ASGI application, which opens its database at its start and closes it at its end."""
    app = FastAPI(
        title="ReasonBlocks",
        version=__version__,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.scopes = {}
    decoded = [Depends(decode_path_params)]
    for module in _modules():
        app.state.scopes |= dict(_scopes(module.router))
        app.include_router(module.router, prefix=VERSION_PREFIX, dependencies=decoded)
    app.include_router(ui.router)
    for error, handler in _HANDLERS.items():
        app.add_exception_handler(error, handler)
    app.add_middleware(InFlight)
    app.add_middleware(Bodies, most_sent=settings.max_body_bytes)
    app.add_middleware(SafeHeaders)
    app.add_middleware(Paths)
    return app


def _scopes(router: APIRouter) -> Iterator[tuple[tuple[str, str], list[Scope]]]:
    """Yield the method and the path of each route, and the scopes that it asks for, for the documentation."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            calls = [dependency.call for dependency in route.dependant.dependencies]
            scopes = [SCOPE_OF[call] for call in calls if call in SCOPE_OF]
            for method in route.methods or ():
                yield (method, f"{VERSION_PREFIX}{route.path_format}"), scopes


def _modules() -> list[ModuleType]:
    names = [found.name for found in pkgutil.iter_modules(routes.__path__) if not found.name.startswith("_")]
    return [importlib.import_module(f"{routes.__name__}.{name}") for name in names]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    server = await run_in_threadpool(_opened, settings)
    app.state.server = server
    try:
        with ends_streams(server.live):
            yield
    finally:
        await server.evaluations.profiles.close()
        await run_in_threadpool(_close, server)


def _opened(settings: Settings) -> Server:
    make_folder(settings.data)
    threads_store = None if settings.threads_url is None else store_of(settings.threads_url)
    storage = Storage.open(
        settings.database, synchronous=settings.sqlite_synchronous, retention_days=settings.retention_days
    )
    migrating = Migrating(storage)
    pool = SharedPool("reasonblocks-evaluate", POOL, SHARE)
    patterns = Patterns(settings)
    return Server(
        settings=settings,
        storage=storage,
        auth=Auth(settings, storage),
        evaluations=OrgEvaluations(storage, pool),
        takers=NoteTakers(storage),
        patterns=patterns,
        findings=Findings(settings, patterns.store),
        live=Live(storage),
        counting=Counting(storage, patterns.counts),
        summarising=Summarising(storage),
        pool=pool,
        migrating=migrating,
        sweeping=Sweeping(storage),
        threads=None if threads_store is None else OrgThreads(threads_store, storage.keys.orgs),
    )


def _close(server: Server) -> None:
    if server.threads is not None:
        server.threads.close()
    server.migrating.end()
    server.sweeping.end()
    server.takers.close()
    server.pool.close()
    server.counting.close()
    server.summarising.close()
    server.live.close()
    server.auth.close()
    server.findings.close()
    server.patterns.close()
    server.storage.close()


# --- errors


async def _api_error(request: Request, error: ApiError) -> Response:
    return refusal(error)


async def _no_database(request: Request, error: StorageUnavailable) -> Response:
    return JSONResponse({"detail": error.told}, 503, RETRY)


async def _unavailable(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 503, RETRY)


async def _full(request: Request, error: StoreFull) -> Response:
    return JSONResponse({"detail": error.reason}, 409)


async def _invalid(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, 422)


async def _invalid_request(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"detail": f"the body is not JSON: {first['ctx']['error']}"}, 400)
    if first["loc"] == ("body",) and "json" not in request.headers.get("content-type", "application/json"):
        return JSONResponse({"detail": "body: send it with the header Content-Type: application/json"}, 422)
    where = [str(part) for part in first["loc"][1:]]  # the first part is "body", "query", "path" or "header"
    return JSONResponse({"detail": f"{'.'.join(where) or 'body'}: {first['msg']}"}, 422)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def _too_deep(request: Request, error: RecursionError) -> Response:
    return JSONResponse({"detail": "the body is nested too deeply"}, 422)


async def _no_text(request: Request, error: UnicodeEncodeError) -> Response:
    return JSONResponse({"detail": "the body has a text with an unpaired surrogate"}, 422)


async def _fault(request: Request, error: Exception) -> Response:
    """Answer after an error of ours. Starlette raises it again, so that the server logs it."""
    return JSONResponse({"detail": "internal server error"}, 500, SAFE_HEADERS)


_HANDLERS: dict[Any, Any] = {
    ApiError: _api_error,
    StorageUnavailable: _no_database,
    StoreError: _unavailable,
    StoreFull: _full,
    Unavailable: _unavailable,
    ConfigError: _invalid,
    EventError: _invalid,
    RequestValidationError: _invalid_request,
    HTTPException: _http_error,
    RecursionError: _too_deep,
    UnicodeEncodeError: _no_text,
    Exception: _fault,
}
