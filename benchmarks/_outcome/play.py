"""Plays many runs on one backend. Each lane plays a track of runs, one after another.

A model on a GPU answers all lanes at once; on any other backend each lane goes on as soon as it has its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing

from .backend import Backend, BackendError, Query, Reply
from .run import Run

Track = Iterable[Run]
"""Runs that one lane plays in their order, so that the cache of the first serves the others: branches of one point."""


def play(tracks: Iterable[Track], backend: Backend, finished: Callable[[Run], None]) -> None:
    """Play all tracks; `finished` gets every run once it is over, in this thread, and then the run is closed.

    An error that names its lane, such as that of a conversation which is too long, ends only the run of the lane, if
    the backend still answers others. Any other error of the backend is raised once every answer that is under way has
    been taken: no finished run is lost. With a backend that is asked in rounds every error is raised at once.
    """
    with closing(_Lanes(iter(tracks), backend, finished)) as lanes:
        if backend.in_rounds:
            _in_rounds(lanes, backend)
        else:
            _in_threads(lanes, backend)


def _in_rounds(lanes: _Lanes, backend: Backend) -> None:
    while queries := lanes.queries():
        for query, reply in zip(queries, backend.complete(queries), strict=True):
            lanes.take(query.lane, reply)


def _in_threads(lanes: _Lanes, backend: Backend) -> None:
    with ThreadPoolExecutor(backend.lanes) as threads:
        asked: dict[Future[list[Reply]], int] = {}
        failed: BaseException | None = None
        patience = 0  # errors that are borne until the next answer: one for each lane, and none before the first answer
        try:
            while failed is None or asked:
                for query in lanes.queries({*asked.values()}) if failed is None else ():
                    asked[threads.submit(backend.complete, [query])] = query.lane
                if not asked:
                    return
                for future in wait(asked, return_when=FIRST_COMPLETED).done:
                    lane, error = asked.pop(future), future.exception()
                    if error is None:
                        lanes.take(lane, future.result()[0])
                        patience = backend.lanes
                    elif isinstance(error, BackendError) and error.lane is not None and patience:
                        lanes.fail(lane, error)
                        patience -= 1
                    else:
                        failed = failed or error
            raise failed
        finally:
            for future in asked:
                future.cancel()


class _Lanes:
    """The runs that are played at this moment, by lane."""

    def __init__(self, waiting: Iterator[Track], backend: Backend, finished: Callable[[Run], None]) -> None:
        self._waiting, self._backend, self._finished = waiting, backend, finished
        self._free = [*range(backend.lanes)][::-1]
        self._live: dict[int, tuple[Run, Iterator[Run]]] = {}

    def queries(self, busy: Iterable[int] = ()) -> list[Query]:
        """Return the next model call of every lane that does not wait for an answer; free lanes start a new track."""
        while self._free and (started := self._next_track()) is not None:
            self._live[self._free.pop()] = started
        waiting = {*busy}
        return [run.query(lane, self._backend) for lane, (run, _) in self._live.items() if lane not in waiting]

    def take(self, lane: int, reply: Reply) -> None:
        """Give a lane's run its answer; a run that is over makes way for the next of its track."""
        self._live[lane][0].take(reply)
        self._go_on(lane)

    def fail(self, lane: int, error: BackendError) -> None:
        """End a lane's run with an error."""
        self._live[lane][0].fail(error)
        self._go_on(lane)

    def _go_on(self, lane: int) -> None:
        run, rest = self._live[lane]
        if not run.over:
            return
        self._finished(run)
        del self._live[lane]
        run.close()
        following = next(rest, None)
        if following is None:
            self._free.append(lane)
        else:
            self._live[lane] = following, rest

    def close(self) -> None:
        """Close the runs that are not over, as after an error."""
        for run, _ in self._live.values():
            run.close()

    def _next_track(self) -> tuple[Run, Iterator[Run]] | None:
        """Return the next track that has a run, with that run; None if all are played."""
        for track in self._waiting:
            runs = iter(track)
            first = next(runs, None)
            if first is not None:
                return first, runs
        return None
