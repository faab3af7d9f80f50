"""The async version of `Threads`: each call runs in a daemon thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from reasonblocks.concurrency.workers import in_daemon

from .engine import Worker
from .threads import LOOKS_S, Threads, action_has_ended
from .values import Thread

if TYPE_CHECKING:
    from reasonblocks.ports import Mailbox, TelemetrySink

P = ParamSpec("P")
R = TypeVar("R")


class _Quiet(Threads):
    """`Threads` that does not open its database before the first call, which runs in a daemon thread."""

    def _begin(self) -> None:
        return


def _in_thread(
    method: Callable[Concatenate[Threads, P], R],
) -> Callable[Concatenate[AsyncThreads, P], Coroutine[Any, Any, R]]:
    """Return the async version of a method of `Threads`, with its parameters, types and docstring."""

    @wraps(method)
    async def call(self: AsyncThreads, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await in_daemon(partial(method, self.sync, *args, **kwargs))

    return call


def _like(
    init: Callable[Concatenate[Threads, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[AsyncThreads, P], None]]:
    """Return a decorator that gives an `__init__` the parameters of another one."""
    return wraps(init)


class AsyncThreads:
    """`Threads` with async methods that never block the event loop. A cancelled call is abandoned, but may take effect.

    `worker`, `sink` and `mailbox` are not async. `sync` is the `Threads` that does the work.
    """

    sync: Threads

    @_like(Threads.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sync = _Quiet(*args, **kwargs)

    open = _in_thread(Threads.open)
    answer = _in_thread(Threads.answer)
    answer_children = _in_thread(Threads.answer_children)
    dismiss = _in_thread(Threads.dismiss)
    take_over = _in_thread(Threads.take_over)
    cancel = _in_thread(Threads.cancel)
    note = _in_thread(Threads.note)
    set_policy = _in_thread(Threads.set_policy)
    add_evidence = _in_thread(Threads.add_evidence)
    resolve = _in_thread(Threads.resolve)
    erase = _in_thread(Threads.erase)
    get = _in_thread(Threads.get)
    log = _in_thread(Threads.log)
    list = _in_thread(Threads.list)
    cards = _in_thread(Threads.cards)
    card = _in_thread(Threads.card)
    feed = _in_thread(Threads.feed)
    drain = _in_thread(Threads.drain)
    doctor = _in_thread(Threads.doctor)
    close = _in_thread(Threads.close)

    async def wait(self, id: str, timeout: float, *, until: Callable[[Thread], bool] = action_has_ended) -> Thread:
        """Return the thread once `until(thread)` holds (default: the action has ended), or after `timeout` seconds."""
        ends = time.monotonic() + timeout
        look_s, longest_s = LOOKS_S
        thread = await self.get(id)
        while not until(thread) and (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(look_s, left))
            look_s = min(longest_s, look_s * 2)
            thread = await in_daemon(partial(self.sync._newer, thread))
        return thread

    def worker(self, *, threads: int = 1) -> Worker:
        return self.sync.worker(threads=threads)

    def sink(self, *, redact: Callable[[str], str] | None = None) -> TelemetrySink:
        return self.sync.sink(redact=redact)

    def mailbox(self) -> Mailbox:
        return self.sync.mailbox()

    async def __aenter__(self) -> AsyncThreads:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
