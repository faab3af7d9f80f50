"""Keeps a number of worker processes running: starts them, replaces those that die, and ends them within seconds."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, TypeAlias

SPAWN = get_context("spawn")
"""Workers share with the parent only their arguments. A fork would copy the locks of its threads."""
END_S = 5.0
"""Seconds that workers have to end before they are killed."""
PAUSE_S = 1.0
"""Seconds before the restart of a worker that died before it was ready."""

Ready: TypeAlias = Callable[[], None]
Work: TypeAlias = Callable[[Ready], None]
"""The program of a worker, which calls its argument when it is ready, and ends at SIGTERM. It must be picklable."""


@dataclass(slots=True, kw_only=True)
class _Worker:
    process: SpawnProcess
    told: Connection
    """Receives a byte when the worker is ready."""
    ready: bool = False


def keep_running(work: Work, count: int, started: Callable[[], None]) -> bool:
    """Run the workers until SIGTERM or SIGINT, and call `started` once all of them are ready.

    Return False if a worker ended before that; a worker that ends later is replaced. Needs the main thread.
    """
    with _stop_signals() as stop:
        workers = [_start(work) for _ in range(count)]
        try:
            if not _all_ready(workers, stop):
                return stop.poll()
            started()
            while not stop.poll():
                _replace_dead(workers, work, stop)
            return True
        finally:
            _end(workers)


def _all_ready(workers: list[_Worker], stop: Connection) -> bool:
    """Wait until all are ready. Return False as soon as one has ended or a signal has arrived."""
    while not all(worker.ready for worker in workers):
        found = wait([stop, *(worker.told for worker in workers if not worker.ready)])
        if stop in found or not all(_listen(worker) for worker in workers if worker.told in found):
            return False
    return True


def _replace_dead(workers: list[_Worker], work: Work, stop: Connection) -> None:
    """Wait for a signal or the end of workers, and start others in their places."""
    ready = [worker.told for worker in workers if not worker.ready]
    found = wait([stop, *ready, *(worker.process.sentinel for worker in workers)])
    for index, worker in enumerate(workers):
        if worker.process.sentinel in found:
            _listen(worker)
            if not worker.ready:
                stop.poll(PAUSE_S)
            _end([worker])
            workers[index] = _start(work)
        elif worker.told in found:
            _listen(worker)


def _listen(worker: _Worker) -> bool:
    """Record that a worker is ready. Return False if it has ended before."""
    try:
        if not worker.ready and worker.told.poll():
            worker.ready = worker.told.recv_bytes() != b""
    except (EOFError, OSError):
        return False
    return worker.ready


def _start(work: Work) -> _Worker:
    told, tell = SPAWN.Pipe(duplex=False)
    with tell:  # the worker has its own; with this one closed, its end is read as the end of the file
        process = SPAWN.Process(target=_run, args=(work, tell))
        process.start()
    return _Worker(process=process, told=told)


def _end(workers: list[_Worker]) -> None:
    until = time.monotonic() + END_S
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()
        worker.told.close()


def _run(work: Work, tell: Connection) -> None:
    """Run the program in the worker process. End the process when its parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent ends the workers
    threading.Thread(target=_outlived, daemon=True).start()
    work(partial(tell.send_bytes, b"ready"))


def _outlived() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _stop_signals() -> Iterator[Connection]:
    """Yield a connection that is readable once SIGTERM or SIGINT has arrived."""
    read, write = SPAWN.Pipe(duplex=False)

    def note(number: int, frame: FrameType | None) -> None:
        write.send_bytes(b"stop")

    before: dict[signal.Signals, Any] = {name: signal.signal(name, note) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        with read, write:
            yield read
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
