"""Plays many runs on one backend: each lane plays a track of runs one by one, and all lanes are asked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .backend import Backend
from .run import Run

Track = Iterable[Run]
"""Runs that one lane plays in their order, so that the cache of the first serves the others: branches of one point."""


def play(tracks: Iterable[Track], backend: Backend, finished: Callable[[Run], None]) -> None:
    """Play all tracks; `finished` gets every run once it is over. Raises what the backend raises, with no run lost that
    was over before."""
    waiting = iter(tracks)
    lanes: dict[int, tuple[Run, Iterator[Run]]] = {}
    free = [*range(backend.lanes)][::-1]
    while True:
        while free and (started := _next_track(waiting)) is not None:
            lanes[free.pop()] = started
        if not lanes:
            return
        queries = [run.query(lane) for lane, (run, _) in lanes.items()]
        for query, reply in zip(queries, backend.complete(queries)):
            run, rest = lanes[query.lane]
            run.take(reply)
            if not run.over:
                continue
            finished(run)
            following = next(rest, None)
            if following is None:
                del lanes[query.lane]
                free.append(query.lane)
            else:
                lanes[query.lane] = following, rest


def _next_track(waiting: Iterator[Track]) -> tuple[Run, Iterator[Run]] | None:
    """Return the next track that has a run, with that run; None if all are played."""
    for track in waiting:
        runs = iter(track)
        first = next(runs, None)
        if first is not None:
            return first, runs
    return None
