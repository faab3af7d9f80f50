"""Where a store works while an event loop goes on: in a daemon thread, for which no loop's end and no exit waits.

`asyncio.to_thread` has few threads, which the program needs for its own, and `asyncio.run` waits for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from typing import TypeVar

from ..exceptions import BadAnswer

T = TypeVar("T")


async def in_daemon(call: Callable[[], T]) -> T:
    """What the call gives or raises; `BadAnswer` for what would end the program. Cancelled, it is left behind."""
    from asyncio import wrap_future  # there already, in whoever awaits this

    future: Future[T] = Future()
    context = copy_context()
    work = threading.Thread(target=context.run, args=(_run, future, call), name="reasonblocks-store", daemon=True)
    work.start()
    return await wrap_future(future)


def _run(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = call()
    except BaseException as exc:  # noqa: BLE001 - the thread's edge: whoever awaits it decides
        future.set_exception(_tamed(exc))
    else:
        future.set_result(found)


def _tamed(exc: BaseException) -> BaseException:
    """An event loop takes some errors for its own end, and some for that of a generator or a task."""
    if isinstance(exc, Exception) and not isinstance(exc, (StopIteration, StopAsyncIteration, CancelledError)):
        return exc
    return BadAnswer("a search", type(exc).__name__, "it may not end its thread, its generator or its task")
