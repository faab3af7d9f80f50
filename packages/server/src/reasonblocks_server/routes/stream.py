"""Streams changes of runs as server-sent events."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from reasonblocks.util.json import compact

from ..auth import Auth, Caller
from ..errors import ApiError, StorageUnavailable
from ..live import Live, Message, Subscription
from ..server import Used
from ..values import Principal
from ._common import MAX_ID_CHARS, NO_NUL, problems, run_of

router = APIRouter(tags=["runs"])
Reader = Annotated[Principal, Caller("read", streams=True)]
HEARTBEAT_SECONDS = 15.0
"""The longest time without a line. Proxies close connections that are silent for 30 to 60 seconds."""
CHECK_SECONDS = 15.0
"""Seconds after which a key is checked again, so that the stream of a revoked one ends."""
RETRY_MS = 2_000
"""Milliseconds after which a client reconnects."""
MAX_INDEX = 2**53
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers with which nginx forwards each line at once."""


MayGoOn: TypeAlias = Callable[[], Awaitable[bool]]
"""Returns False when the key of a listener is not valid any more."""


class EventStream(StreamingResponse):
    """The messages of a listener. It is closed whenever the response ends."""

    media_type = "text/event-stream"

    def __init__(self, listener: Subscription, may_go_on: MayGoOn) -> None:
        super().__init__(lines_of(listener, may_go_on), headers=HEADERS)
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listener.close()


async def lines_of(listener: Subscription, may_go_on: MayGoOn) -> AsyncIterator[str]:
    """Yield the messages as server-sent events, and a comment whenever there is none for a while."""
    yield f"retry: {RETRY_MS}\n\n"
    checked = time.monotonic()
    while True:
        if time.monotonic() - checked >= CHECK_SECONDS:
            if not await may_go_on():
                return
            checked = time.monotonic()
        try:
            message = await asyncio.wait_for(listener.__anext__(), HEARTBEAT_SECONDS)
        except asyncio.TimeoutError:
            yield ": still here\n\n"
        except StopAsyncIteration:
            return
        else:
            yield event_text(message)


def event_text(message: Message) -> str:
    """Return a message as a server-sent event. JSON has no line breaks."""
    return f"event: {message.kind}\nid: {message.id}\ndata: {compact(message.body)}\n\n"


@router.get(
    "/monitor/stream",
    response_class=StreamingResponse,
    responses={
        **problems(404),
        200: {"description": "Server-sent events `run`, `step` and `note`.", "content": {"text/event-stream": {}}},
    },
)
async def stream(
    request: Request,
    caller: Reader,
    server: Used,
    run_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARS, pattern=NO_NUL)] = None,
    after: Annotated[int, Query(ge=-1, le=MAX_INDEX)] = -1,
    last_event_id: Annotated[str, Header(max_length=64)] = "",
) -> Any:
    """Stream the changes of a run, its steps after `after`, and its notes; without `run_id`, those of all runs.

    A client that reconnects, as browsers do by themselves, continues after the event in `Last-Event-ID`. An event of a
    run's step has the fields of its event; the texts of a large one are cut, and `shortened` is true.
    """
    may_go_on = partial(is_valid, server.auth, request.headers.get("authorization", ""))
    if run_id is None:
        since = number_in(last_event_id)
        return EventStream(server.live.subscribe(caller.org_id, project_id=caller.project_id, since=since), may_go_on)
    row = await run_in_threadpool(run_of, server, caller, run_id)
    seen = number_in(last_event_id)
    start = after if seen is None else max(after, int(min(seen, MAX_INDEX)))
    listener = server.live.subscribe(caller.org_id, row.run_id, project_id=caller.project_id, after=start)
    return EventStream(listener, may_go_on)


async def is_valid(auth: Auth, authorization: str) -> bool:
    """Return False for the header of a key that is revoked or over."""
    try:
        await auth.caller(authorization)
    except ApiError as error:
        return error.status != 401
    except StorageUnavailable:
        pass
    return True


def number_in(last_event_id: str) -> float | None:
    """Return the step number in an event's id, or None if this server has not made the id."""
    try:
        found = float(last_event_id)
    except ValueError:
        return None
    return found if -1 <= found <= MAX_INDEX else None


@contextmanager
def ends_streams(live: Live) -> Iterator[None]:
    """End the streams when the process is asked to end, because the server waits for open responses first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(live.end_streams)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    ours = {number: handler for number, handler in before.items() if callable(handler)}
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in ours.items():
            if signal.getsignal(number) is end:
                signal.signal(number, handler)
