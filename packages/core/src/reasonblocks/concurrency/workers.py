"""Runs calls in daemon threads, so that neither an event loop's shutdown nor the interpreter's exit waits for them.

`concurrent.futures` joins its threads at exit, and `asyncio.to_thread` has few of them, which the program needs for
itself and which `asyncio.run` joins. A call that hangs keeps its thread, which is abandoned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ..exceptions import BadAnswer, ProtocolError, RunStopped
from .forks import on_fork
from .interrupts import Condition

T = TypeVar("T")

IDLE_SECONDS = 5.0
"""A thread without work ends after this time."""
NOT_ITS_OWN = "it may not end its thread, its generator or its task"

_Task = tuple["Future[Any]", Callable[[], Any]]
_Inbox = SimpleQueue["_Task | None"]


@contextmanager
def contain_faults(source: str) -> Iterator[None]:
    """Raise `BadAnswer` for exceptions that would end a thread, or pass for the end of a generator or task."""
    try:
        yield
    except (StopIteration, StopAsyncIteration, CancelledError) as exc:
        raise BadAnswer(source, type(exc).__name__, NOT_ITS_OWN) from exc
    except ProtocolError as exc:  # the guard would let it through, as an adapter's own error
        raise BadAnswer(source, str(exc), "it may not raise ProtocolError, which is for adapters") from exc
    except RunStopped as exc:  # of another run: the guard would end this agent by it
        raise BadAnswer(source, str(exc), "it may not raise RunStopped, which ends another run") from exc
    except Exception:
        raise
    except BaseException as exc:
        raise BadAnswer(source, type(exc).__name__, NOT_ITS_OWN) from exc


class Pending(Future[T]):
    """A future whose lock no interrupted thread keeps; else the thread that sets its result would wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = Condition()


class Workers:
    """Daemon threads of this process, as many as there are calls at once; an idle one takes the next call."""

    def __init__(self) -> None:
        self._forget_threads()
        on_fork(self._forget_threads)

    def _forget_threads(self) -> None:
        """Start without threads: a forked process inherits none."""
        self._idle: list[_Inbox] = []
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], T], source: str = "a callable") -> Future[T]:
        """Run a call in the caller's context. `source` names it in errors."""
        future: Future[T] = Pending()
        context = copy_context()
        task: _Task = (future, lambda: context.run(_contained, source, call))
        with self._lock:
            idle = self._idle
            inbox = idle.pop() if idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox, idle), name="reasonblocks-worker", daemon=True).start()
        inbox.put(task)
        return future

    def close(self) -> None:
        """End the idle threads now, and each of the others after its call. A later call starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
            for inbox in idle:
                inbox.put(None)

    def _serve(self, inbox: _Inbox, idle: list[_Inbox]) -> None:
        while (task := self._next(inbox, idle)) is not None:
            _run(*task)
            del task
            with self._lock:
                if idle is not self._idle:  # closed meanwhile
                    return
                idle.append(inbox)

    def _next(self, inbox: _Inbox, idle: list[_Inbox]) -> _Task | None:
        while True:
            try:
                task = inbox.get(timeout=IDLE_SECONDS)
            except Empty:
                task = None
            with self._lock:
                if inbox in idle:
                    idle.remove(inbox)
                elif task is None:  # a task is handed over at the last moment, or an interrupt prevented that
                    idle.append(inbox)
                    continue
            return task


def _contained(source: str, call: Callable[[], T]) -> T:
    with contain_faults(source):
        return call()


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as exc:  # noqa: BLE001 - the thread's edge: the guard on the other side decides
        future.set_exception(exc)
    else:
        future.set_result(result)


_searching = Workers()


async def in_daemon(call: Callable[[], T]) -> T:
    """Await a store's blocking call. Raises what it raises; if it is cancelled, the call is abandoned."""
    from asyncio import wrap_future  # already imported by the awaiting code; others do not pay for it

    return await wrap_future(_searching.submit(call, "a search"))
