"""The unread messages of one listener: a thread adds them, and a task of an event loop reads them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, NamedTuple

from reasonblocks.util.json import compact

from ..values import Body

MAX_UNREAD = 65_536
"""Bytes of unread messages at which a listener is closed. It can reconnect and continue."""
ROOM = MAX_UNREAD // 2
"""Bytes of unread messages up to which a listener receives more steps. The others wait in the database."""
STUCK_SECONDS = 5.0
"""Seconds without a read after which a listener that is behind is closed."""


class Message(NamedTuple):
    """A message: a changed run or note, or a step event. A client that reconnects continues after `id`."""

    kind: Literal["run", "step", "note"]
    id: str
    body: Body


class Subscription:
    """An asynchronous iterator of the messages of one run, or of all runs of an org.

    It ends when it is closed: by its reader, at the end of the server, or because of too many unread messages.

    `after` is the newest step that it has received, and `since` the time of the newest run.
    """

    def __init__(
        self,
        org_id: str,
        run_id: str | None,
        project_id: str | None,
        *,
        after: int,
        since: float | None,
        drained: Callable[[], None],
    ) -> None:
        """`drained` is called when a listener that was behind has read all its messages."""
        self.org_id, self.run_id, self.project_id = org_id, run_id, project_id
        self.after, self.since = after, since
        self.is_behind = True
        """True until everything in the database has been offered."""
        self.notes: dict[str, str] = {}
        """The states of the notes that have been offered."""
        self.run_state: object = None
        """The state of the run that has been offered."""
        self._drained = drained
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._messages: deque[tuple[Message, int]] = deque()
        self._unread = 0
        self._moved = time.monotonic()
        """The time of the last read, or of the first message that did not fit."""
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Message:
        while True:
            self._ready.clear()
            with self._lock:
                found = self._messages.popleft() if self._messages else None
                if found is not None:
                    self._unread -= found[1]
                    self._moved = time.monotonic()
                is_empty = not self._messages
            if found is not None:
                if is_empty and self.is_behind:
                    self._drained()
                return found[0]
            if self._closed:
                raise StopAsyncIteration
            await self._ready.wait()

    def close(self) -> None:
        """End the iteration after the present messages."""
        self._closed = True
        self._notify()

    def has_room(self) -> bool:
        """Return False if the listener must read first. Close one that has not read for a while."""
        with self._lock:
            is_full = self._unread >= ROOM
            is_stuck = is_full and time.monotonic() - self._moved > STUCK_SECONDS
        if is_stuck:
            self.close()
        return not is_full and not self._closed

    def offer(self, message: Message) -> None:
        """Add a message. Close the listener if there are too many unread bytes."""
        size = len(compact(message.body).encode())
        with self._lock:
            fits = not self._closed and self._unread + size <= MAX_UNREAD
            if fits:
                if self._unread < ROOM:
                    self._moved = time.monotonic()
                self._messages.append((message, size))
                self._unread += size
        if fits:
            self._notify()
        else:
            self.close()

    def _notify(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:  # the event loop has ended, and so have its readers
            self._closed = True
