"""Counts how often each pattern was shown and what followed, in a background thread."""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from reasonblocks.backends.pattern_stats import Counts, PatternStats
from reasonblocks.concurrency.interrupts import Condition
from reasonblocks.events import Event, StepEvent, event_of
from reasonblocks.exceptions import EventError, ReasonBlocksError

from .errors import StorageUnavailable
from .storage import Storage

logger = logging.getLogger("reasonblocks.server")

SHOWN = ("retrieved", "injected")
"""The counts of single steps, which are added while the run goes on."""
JUDGED = ("recovered", "not_recovered")
"""The counts that compare a step with later ones, which are added when the run has finished."""
GATHER_SECONDS = 1.0
"""Seconds for which the counts of steps are gathered, so that not every step is a write."""
MAX_GATHERED = 10_000
"""The most counts of an org that are gathered. Beyond this, those of other patterns are dropped."""
MAX_WAITING = 10_000
"""The most finished runs that wait to be counted. Beyond this, the oldest is dropped."""
RETRY_SECONDS = 5.0
ATTEMPTS = 12
"""Attempts to count a run while the database is not available: one minute in all."""
STEPS = 500
"""Steps of one query."""
READ = ("event", "run_id", "step_index", "timestamp", "monitors_fired", "composite", "metadata")
"""The fields of a step that counting reads. The texts of a long run would not fit into memory."""
Numbers: TypeAlias = "Counter[tuple[str, str]]"
"""The numbers by the kind of count and the id of a pattern."""


class Counting:
    """Adds to the counts of patterns: what each new step was shown, and what followed in each finished run.

    A run that finishes again is not counted again. Runs that still wait when the process ends are not counted.
    """

    def __init__(self, storage: Storage, counts: Callable[[str], Counts]) -> None:
        """`counts` returns the counts of an org's patterns. They ignore the ids of other patterns."""
        self._storage, self._counts = storage, counts
        self._waiting: deque[tuple[str, str]] = deque(maxlen=MAX_WAITING)
        self._gathered = defaultdict[str, Numbers](Counter)
        self._lock = Condition()
        self._is_busy = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def stored(self, org_id: str, steps: Iterable[StepEvent], finished: Iterable[str]) -> None:
        """Gather what these new steps were shown, and queue these finished runs to be counted."""
        shown = _numbers(steps, SHOWN)
        runs = [(org_id, run_id) for run_id in finished]
        if not shown and not runs:
            return
        with self._lock:
            if self._ended.is_set():
                return
            if shown:
                gathered = self._gathered[org_id]
                for key, number in shown.items():
                    if key in gathered or len(gathered) < MAX_GATHERED:
                        gathered[key] += number
            self._waiting.extend(runs)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="reasonblocks-counting", daemon=True)
                self._thread.start()
            self._lock.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until all steps and finished runs are counted; return False if that takes longer."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._has_work() and not self._is_busy, seconds)

    def close(self) -> None:
        """End the thread after the run that it counts and the gathered counts."""
        self._ended.set()
        with self._lock:
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _has_work(self) -> bool:
        return bool(self._waiting or self._gathered)

    def _work(self) -> None:
        ended = False
        while not ended:
            with self._lock:
                self._is_busy = False
                self._lock.notify_all()
                self._lock.wait_for(lambda: self._has_work() or self._ended.is_set())
                self._lock.wait_for(lambda: self._waiting or self._ended.is_set(), GATHER_SECONDS)
                ended = self._ended.is_set()
                gathered = dict(self._gathered)
                self._gathered.clear()
                run = self._waiting.popleft() if self._waiting and not ended else None
                self._is_busy = True
            for org_id, numbers in gathered.items():
                self._add(org_id, numbers, f"of org {org_id!r}")
            if run is not None:
                self._try(*run)

    def _try(self, org_id: str, run_id: str) -> None:
        """Count a run. Try again while its events cannot be read. Nothing is counted twice."""
        for _ in range(ATTEMPTS):
            try:
                events = list(self._events(org_id, run_id))
            except StorageUnavailable:
                if self._ended.wait(RETRY_SECONDS):
                    return
                continue
            self._add(org_id, _numbers(events, JUDGED), f"of run {run_id!r}")
            return
        logger.warning("cannot count the patterns of run %r: the database is not available", run_id)

    def _add(self, org_id: str, numbers: Numbers, whose: str) -> None:
        """Write the numbers: once for each kind."""
        ids = defaultdict[str, list[str]](list)
        for (what, pattern_id), number in numbers.items():
            ids[what] += [pattern_id] * number
        try:
            counts = self._counts(org_id)
            for what, names in ids.items():
                counts.count(names, what)
        except (ReasonBlocksError, StorageUnavailable) as exc:
            logger.warning("cannot count the patterns %s: %s", whose, exc)
        except Exception:  # the thread serves all orgs of the worker
            logger.exception("cannot count the patterns %s", whose)

    def _events(self, org_id: str, run_id: str) -> Iterator[Event]:
        """Yield the steps of a run, without their texts, and its end."""
        after = -1
        while True:
            steps, has_more = self._storage.runs.page(org_id, run_id, after=after, limit=STEPS)
            for body in steps:
                try:
                    yield event_of({name: body[name] for name in READ if name in body})
                except EventError:  # of another version
                    continue
            if not steps or not has_more:
                break
            after = steps[-1]["step_index"]
        finish = self._storage.runs.finish_body(org_id, run_id)
        if finish:
            yield event_of(finish)


class _Kept:
    """Keeps the counts of some kinds in memory."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.numbers: Numbers = Counter()
        self._kinds = kinds

    def count(self, ids: Iterable[str], what: str) -> None:
        if what in self._kinds:
            self.numbers.update((what, pattern_id) for pattern_id in ids)


def _numbers(events: Iterable[Event], kinds: Sequence[str]) -> Numbers:
    """Return the counts of these kinds, by the rules of `PatternStats`."""
    kept = _Kept(kinds)
    stats = PatternStats(kept)
    for event in events:
        stats.emit(event)
    return kept.numbers
