"""The waiting notes of all runs, in memory, so that an evaluation reads no table."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from reasonblocks.types import Note

from ..values import NoteRow

MAX_UNWRITTEN = 10_000
"""The most told notes that are not yet recorded. Beyond this, the oldest is dropped, and may be sent again."""
MAX_GONE = 10_000
RunKey = tuple[str, str]
"""An org and one of its runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Notes that a run has been told, to be recorded."""

    org_id: str
    run_id: str
    note_ids: tuple[str, ...]
    step: int | None


class WaitingNotes:
    """The queued notes of all runs as of the last query, with this worker's later changes. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: dict[RunKey, tuple[NoteRow, ...]] = {}
        self._added: dict[str, NoteRow] = {}
        """Notes that were added since the last query began."""
        self._gone: dict[str, None] = {}
        """Notes that no longer wait, although a query may still return them."""
        self._unwritten: deque[Told] = deque(maxlen=MAX_UNWRITTEN)

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._rows.values())) + len(self._unwritten)

    def oldest(self, org_id: str, run_id: str, project_id: str | None = None) -> Note | None:
        """Return the oldest waiting note of a run, if the run is in the project."""
        now = self._clock()
        with self._lock:
            rows = self._rows.get((org_id, run_id), ())
        row = next((row for row in rows if row.expires > now and project_id in (None, row.project_id)), None)
        return None if row is None else Note(id=row.note_id, text=row.text)

    def add(self, row: NoteRow) -> None:
        """Add a note that was written by this worker."""
        with self._lock:
            self._added[row.note_id] = row
            key = (row.org_id, row.run_id)
            self._rows[key] = (*self._rows.get(key, ()), row)

    def drop(self, org_id: str, run_id: str, ids: Collection[str], project_id: str | None = None) -> tuple[str, ...]:
        """Drop notes that no longer wait, if their run is in the project. Return the ids of those that did wait."""
        key = (org_id, run_id)
        with self._lock:
            rows = self._rows.get(key, ())
            ours = [row.note_id for row in rows if project_id in (None, row.project_id)]
            dropped = tuple([note_id for note_id in ours if note_id in ids])
            if not dropped:
                return ()
            self._keep(key, tuple([row for row in rows if row.note_id not in dropped]))
            for note_id in dropped:
                self._added.pop(note_id, None)
                self._gone[note_id] = None
            while len(self._gone) > MAX_GONE:
                del self._gone[next(iter(self._gone))]
        return dropped

    def tell(self, told: Told, project_id: str | None = None) -> bool:
        """Drop notes that a run has been told, and remember to record this. Return False if none of them waited."""
        dropped = self.drop(told.org_id, told.run_id, told.note_ids, project_id)
        if not dropped:
            return False
        with self._lock:
            self._unwritten.append(Told(org_id=told.org_id, run_id=told.run_id, note_ids=dropped, step=told.step))
        return True

    def write(self, write: Callable[[Told], None]) -> None:
        """Record the told notes. If that raises, they are kept for the next time."""
        while True:
            with self._lock:
                told = self._unwritten.popleft() if self._unwritten else None
            if told is None:
                return
            try:
                write(told)
            except BaseException:
                with self._lock:
                    if len(self._unwritten) < MAX_UNWRITTEN:
                        self._unwritten.appendleft(told)
                raise

    def read(self, read: Callable[[], Iterable[NoteRow]]) -> set[RunKey]:
        """Replace the notes by the result of a query. Return the runs whose notes differ."""
        with self._lock:
            self._added.clear()
            gone_before = set(self._gone)
        rows = list(read())
        with self._lock:
            unwritten = {note_id for told in self._unwritten for note_id in told.note_ids}
            found = {row.note_id for row in rows}
            for note_id in gone_before - found - unwritten:
                self._gone.pop(note_id, None)
            rows += [row for note_id, row in self._added.items() if note_id not in found]
            before, self._rows = self._rows, _by_run([row for row in rows if row.note_id not in self._gone])
            keys = before.keys() | self._rows.keys()
            return {key for key in keys if before.get(key) != self._rows.get(key)}

    def _keep(self, key: RunKey, rows: tuple[NoteRow, ...]) -> None:
        if rows:
            self._rows[key] = rows
        else:
            self._rows.pop(key, None)


def _by_run(rows: Sequence[NoteRow]) -> dict[RunKey, tuple[NoteRow, ...]]:
    found: dict[RunKey, tuple[NoteRow, ...]] = {}
    for row in sorted(rows, key=lambda row: (row.created, row.note_id)):
        key = (row.org_id, row.run_id)
        found[key] = (*found.get(key, ()), row)
    return found
