"""Runs the network I/O of this process on one event loop in a daemon thread, apart from every caller's loop.

Connections outlive `asyncio.run`, sync and async callers share them, and neither an event loop's shutdown nor the
interpreter's exit waits for an exchange.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from ...concurrency.forks import on_fork
from ...concurrency.workers import Pending, Workers
from ...exceptions import Unavailable

T = TypeVar("T")

THREAD_NAME = "reasonblocks-http"

_blocking = Workers()


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose blocking calls, such as DNS queries, run in daemon threads: asyncio's delay the exit."""

    def __init__(self) -> None:
        super().__init__()
        self.slow_callback_duration = 1.0  # of a debug log; the first request imports parts of httpx, in 0.1 s

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]  # as typed there, with type variables of a newer Python
        call = partial(func, *args)
        try:
            return asyncio.wrap_future(_blocking.submit(call, "a DNS query"), loop=self)
        except RuntimeError:  # no thread can be started at exit: this one may wait, because no exit waits for it
            done = self.create_future()
            done.set_result(call())
            return done


class NetworkThread:
    """A daemon thread with an event loop. It runs while `users` are registered, and starts again for the next one."""

    def __init__(self) -> None:
        self._left_to_parent: list[object] = []
        """Loops of parent processes: closing one would change the parent's selector."""
        self._loop: _Loop | None = None
        self._users = 0
        self._reset()
        on_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        if self._loop is not None:
            self._left_to_parent.append(self._loop)
        self._loop = None

    def enter(self) -> None:
        """Register a user and start the thread, which cannot be started at exit. Raises `Unavailable`."""
        with self._lock:
            self._running()
            self._users += 1

    def leave(self, last_words: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a user's last work without waiting for it; after the last user's, stop the thread."""
        with self._lock:
            self._users -= 1
            loop = self._loop
            if loop is None:
                return
            if not self._users:
                self._loop = None
            asyncio.run_coroutine_threadsafe(self._last(last_words, loop, stops=self._loop is None), loop)

    async def _last(self, last_words: Callable[[], Coroutine[Any, Any, None]], loop: _Loop, *, stops: bool) -> None:
        try:
            await last_words()
        finally:
            if stops:
                loop.stop()

    def later(self, work: Callable[[], object]) -> None:
        """Run `work` in the thread, if there is one. Takes no lock, so garbage collection may call it anywhere."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(work)

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run a coroutine; cancelling the future cancels it. Raises `Unavailable`."""
        future: Future[T] = Pending()
        with self._lock:
            loop = self._running()
            loop.call_soon_threadsafe(partial(_begin, loop, work, future))
        return future

    def _running(self) -> _Loop:
        if self._loop is None or self._loop.is_closed():
            loop = _Loop()
            thread = threading.Thread(target=_serve, args=(loop,), name=THREAD_NAME, daemon=True)
            try:
                thread.start()
            except RuntimeError as exc:  # at exit, or with too many threads
                try:
                    loop.close()
                except RuntimeError:  # it runs: an interrupt after the start became this error in `threading`
                    loop.call_soon_threadsafe(loop.stop)
                raise Unavailable("the network", "no thread can be started") from exc
            except BaseException:
                loop.call_soon_threadsafe(loop.stop)  # if the interrupted start goes on
                raise
            self._loop = loop
        return self._loop


def _begin(loop: _Loop, work: Callable[[], Coroutine[Any, Any, T]], future: Future[T]) -> None:
    """Run a coroutine as a task, whose outcome is that of the future; the future cancels it."""
    task = loop.create_task(work())

    def cancel(done: Future[T]) -> None:
        if done.cancelled():
            with suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(task.cancel)

    def finish(_: asyncio.Task[T]) -> None:
        error = None if task.cancelled() else task.exception()  # retrieved, so that asyncio does not log it
        if task.cancelled():
            future.cancel()
        if not future.set_running_or_notify_cancel():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    future.add_done_callback(cancel)
    task.add_done_callback(finish)


def _serve(loop: _Loop) -> None:
    if loop.is_closed():  # likewise
        return
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


network = NetworkThread()
