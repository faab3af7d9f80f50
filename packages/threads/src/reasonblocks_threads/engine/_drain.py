"""Does due works: claims one, calls its handler, and puts it back if that fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..errors import StoreUnavailable
from ..values import Work
from .described import describe_error
from .lost import end_lost

if TYPE_CHECKING:
    from ._engine import Engine

LEASES_S: Mapping[str, float] = {
    "begin": 30, "infer": 60, "execute": 120, "clean_up": 60, "timeout": 30, "cascade_up": 30, "cascade_down": 30,
    "notify": 30,
}  # fmt: skip
"""Seconds that a process has for a work, if the work does not name its own."""
MOST: Mapping[str, int] = {
    "begin": 8, "infer": 2, "execute": 1, "clean_up": 2, "timeout": 8, "cascade_up": 8, "cascade_down": 8, "notify": 8,
}  # fmt: skip
"""Attempts of a work, if the work does not name its own."""
BACK_OFF_S, LONGEST_BACK_OFF_S = 1.0, 300.0
"""Seconds before the second attempt, which double with each, and the most."""
WORKS = 10_000
"""The most works of one drain: what arises without end is left for the next."""
UNAVAILABLE = 16
"""Failures of the store in a row after which a drain raises; the store itself waits for seconds each time."""
PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.05


def back_off(attempts: int) -> float:
    """Return the seconds before the next attempt."""
    return min(LONGEST_BACK_OFF_S, BACK_OFF_S * 2.0 ** min(max(attempts - 1, 0), 16))


def drain(engine: Engine, *, limit: int | None, stop: Callable[[], bool]) -> int:
    """Do due works until none is due. Returns the number of those that were done or tried.

    Raises `StoreUnavailable` if the store stays so; an error of a handler is kept in its work.
    """
    done = failures = 0
    most = WORKS if limit is None else limit
    while done < most and not stop():
        try:
            if not _one(engine):
                return done
        except StoreUnavailable:
            failures += 1
            if failures >= UNAVAILABLE:
                raise
            time.sleep(min(LONGEST_PAUSE_S, PAUSE_S * 2**failures))
        else:
            failures = 0
            done += 1
    return done


def _one(engine: Engine) -> bool:
    """Do the most urgent due work, or end those that were lost. Returns False if there are none."""
    work = _claimed(engine)
    if work is None:
        return end_lost(engine, MOST) > 0
    _do(engine, work)
    return True


def _claimed(engine: Engine) -> Work | None:
    with engine.store.write(durable=False) as writing:
        return writing.claim(
            now=engine.now(), lease=engine.token(), has=engine.has, leases=LEASES_S, most=MOST, org_id=engine.org_id
        )


def _do(engine: Engine, work: Work) -> None:
    """Call the handler of a leased work, then remove the work, or put it back with the error."""
    lease = work.lease or ""
    try:
        engine.handlers[work.kind](engine, work)
    except Exception as exc:  # noqa: BLE001 - the guard: an error of one work must not end the others
        _put_back(engine, work, lease, exc)
    else:
        with engine.store.write([work.thread_id], durable=False) as writing:
            writing.finish_work(work.id, lease)


def _put_back(engine: Engine, work: Work, lease: str, error: Exception) -> None:
    engine.log_once(f"the work {work.kind!r}", error)
    due_at = engine.now() + back_off(work.attempts)
    with engine.store.write([work.thread_id], durable=False) as writing:
        writing.put_back(work.id, lease, due_at=due_at, error=describe_error(error))
