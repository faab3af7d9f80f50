"""Notifies open pages of changed runs, by server-sent events without content."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..errors import ApiError, StorageUnavailable
from ..live import Subscription
from ..server import Server
from ._pages import HEADERS
from ._visit import Visit, admit, whole

SECONDS = 300.0
"""The duration of a stream. The browser then opens the next one, and its login is checked again."""
BEAT = 15.0
"""Seconds between comments, which show the proxies and us whether the connection is still open."""
CHECK = 15.0
"""Seconds after which the login is checked again."""
BEFORE = 10.0
"""Seconds before the start of the stream whose changes it reports, because the page was made earlier."""


async def stream(request: Request) -> Response:
    """Send `changed` whenever the run in the query has changed, or any run of the org if there is none."""
    server: Server = request.app.state.server
    visit = await run_in_threadpool(admit, Visit(server=server, request=request, login=None, now=time.time()))
    if visit.login is None:
        return Response("not logged in", status_code=401, media_type="text/plain", headers=HEADERS)
    run_id, after = request.query_params.get("run"), whole(request.query_params.get("after", ""))
    try:
        subscription = server.live.subscribe(
            visit.org,
            run_id,
            project_id=visit.key.project_id,
            after=-1 if after is None else after,
            since=None if run_id is not None else visit.now - BEFORE,
        )
    except ApiError as error:
        return Response(error.detail, error.status, {**HEADERS, **error.headers}, "text/plain")
    events = _events(subscription, visit)
    headers = {**HEADERS, "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(subscription: Subscription, visit: Visit) -> AsyncIterator[str]:
    checked = time.monotonic()
    ends = checked + SECONDS
    yield "retry: 2000\n\n"
    try:
        waiting = asyncio.ensure_future(anext(subscription))
        while (left := ends - time.monotonic()) > 0:
            if time.monotonic() - checked >= CHECK:
                if not await run_in_threadpool(_is_valid, visit):
                    return
                checked = time.monotonic()
            done, _ = await asyncio.wait({waiting}, timeout=min(BEAT, left))
            if not done:
                yield ": here\n\n"
                continue
            try:
                waiting.result()
            except StopAsyncIteration:
                return
            yield "event: changed\ndata:\n\n"
            waiting = asyncio.ensure_future(anext(subscription))
    finally:
        waiting.cancel()
        subscription.close()


def _is_valid(visit: Visit) -> bool:
    """Return False for a login that is over, or whose key is."""
    try:
        return admit(replace(visit, login=None, now=time.time())).login is not None
    except StorageUnavailable:
        return True
