"""A store that breaks at a chosen commit, around a real one: the process dies before the commit, or after it."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reasonblocks_threads import StoreUnavailable
from reasonblocks_threads.ports import Reading, Store, Writing
from reasonblocks_threads.values import Letter

When = Literal["before", "after"]


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Make a folder in memory where the system has one: a killed process leaves there what it leaves on a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


class Killed(BaseException):
    """The end of a process, as far as one process can play it: no handler may catch it."""


@dataclass
class Faults:
    """Counts commits, and ends the process at commit number `at` (from 1), before or after it; 0: never.

    `dead`: the process has died, and nothing is written until a test says that another one goes on.
    """

    at: int = 0
    when: When = "after"
    really: bool = False
    """True: SIGKILL. False: raise `Killed`, which ends the process as far as one process can play it."""
    commits: int = 0
    dead: bool = False
    replaced: bool = False
    """True: another process goes on. A test that still uses this one would open its file again, and leave it open."""

    def live(self) -> None:
        self.check()
        if self.dead:
            raise Killed

    def check(self) -> None:
        assert not self.replaced, "this process has died: use the driver of the one that goes on"

    def reach(self, when: When) -> None:
        if when == "before":
            self.commits += 1
        if self.at == self.commits and self.when == when:
            if self.really:
                os.kill(os.getpid(), signal.SIGKILL)
            self.dead = True
        self.live()


class FaultyStore:
    """A `Store` around `store` with these faults."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self.store, self.faults = store, faults

    def write(self, thread_ids: Sequence[str] = (), *, durable: bool = True) -> AbstractContextManager[Writing]:
        return self._write(thread_ids, durable)

    @contextmanager
    def _write(self, thread_ids: Sequence[str], durable: bool) -> Iterator[Writing]:
        self.faults.live()
        with self.store.write(thread_ids, durable=durable) as writing:
            yield writing
            self.faults.reach("before")
        self.faults.reach("after")

    def read(self) -> AbstractContextManager[Reading]:
        self.faults.check()
        return self.store.read()

    def waiting(self, run_id: str) -> Sequence[Letter]:
        self.faults.check()
        return self.store.waiting(run_id)

    def close(self) -> None:
        self.store.close()


class Locked(FaultyStore):
    """A store whose next `locked` writes are refused, because others hold its lock."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, Faults())
        self.locked = 0

    def write(self, thread_ids: Sequence[str] = (), *, durable: bool = True) -> AbstractContextManager[Writing]:
        if self.locked:
            self.locked -= 1
            raise StoreUnavailable("database is locked")
        return super().write(thread_ids, durable=durable)
