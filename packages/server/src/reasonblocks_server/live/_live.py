"""Polls the database in one thread of a worker, while there are listeners or notes may wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from reasonblocks.types import Note

from ..bodies import live_note, live_run, live_step
from ..errors import ApiError, StorageUnavailable
from ..storage import Storage
from ..values import NoteRow, RunFilter, RunRow
from ._notes import RunKey, Told, WaitingNotes
from ._subscription import Message, Subscription

logger = logging.getLogger("reasonblocks.server")

POLL_SECONDS = 0.5
WAKE_SECONDS = 0.05
"""The shortest time between two polls of a worker whose own clients send events."""
RETRY_SECONDS = 5.0
"""The longest pause between polls of a database that is not available."""
LATE_SECONDS = 5.0
"""Seconds by which a commit may be later than the time that it records."""
ASKED_SECONDS = 60.0
"""Seconds for which notes are polled after an evaluation has asked for them."""
MAX_LISTENERS = 256
"""The most listeners of a worker. Each has at most 64 KB of unread messages."""
MAX_OF_ORG = MAX_LISTENERS // 4
"""The most listeners of one org, so that there are some left for the others."""
MAX_CHANGED = 1_000
"""Runs of one query."""
MAX_SHOWN = 50
"""The most changed runs of one poll that a listener to all runs receives, as many as a list shows."""
STEPS = 200
"""Steps of one query."""


class Live:
    """The waiting notes and the listeners of one worker. No method waits for the database.

    Events and notes of other workers arrive within `POLL_SECONDS`. The thread starts when it is first needed. While
    the database is not available, known notes are still passed on, and listeners receive nothing.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._notes = WaitingNotes(time.time)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._listeners: tuple[Subscription, ...] = ()
        self._asked = -ASKED_SECONDS
        """The monotonic time of the last evaluation that asked for notes."""
        self._runs = ChangedRuns(storage)
        self._touched: set[RunKey] = set()
        """Runs whose notes have changed in this worker."""
        self._failing = False

    def waiting(
        self, org_id: str, run_id: str, told: Collection[str] = (), *, project_id: str | None = None
    ) -> tuple[Note, ...]:
        """Return the oldest waiting note of a run, without the notes that its client reports as told.

        A client with a project gets only the notes of that project's runs.
        """
        now, before = time.monotonic(), self._asked
        self._asked = now
        if now - before >= ASKED_SECONDS:  # the thread may be asleep
            self._start()
            self._wake.set()
        self.told(org_id, run_id, told, project_id=project_id)
        note = self._notes.oldest(org_id, run_id, project_id)
        return () if note is None else (note,)

    def told(
        self,
        org_id: str,
        run_id: str,
        ids: Collection[str],
        step: int | None = None,
        *,
        project_id: str | None = None,
    ) -> None:
        """Drop notes that a run has been told. The thread records this."""
        told = Told(org_id=org_id, run_id=run_id, note_ids=tuple(ids), step=step)
        if ids and self._notes.tell(told, project_id):
            self._touch(org_id, run_id)

    def note_added(self, row: NoteRow) -> None:
        """Add a new note, which waits for its run."""
        self._notes.add(row)
        self._touch(row.org_id, row.run_id)

    def note_withdrawn(self, row: NoteRow) -> None:
        """Drop a withdrawn note."""
        self._notes.drop(row.org_id, row.run_id, (row.note_id,))
        self._touch(row.org_id, row.run_id)

    def events_stored(self, org_id: str, run_ids: Iterable[str]) -> None:
        """Notify the listeners to these runs at once."""
        listeners = self._listeners
        if listeners:
            ids = set(run_ids)
            if any(it.org_id == org_id and (it.run_id is None or it.run_id in ids) for it in listeners):
                self._wake.set()

    def subscribe(
        self,
        org_id: str,
        run_id: str | None = None,
        *,
        project_id: str | None = None,
        after: int = -1,
        since: float | None = None,
    ) -> Subscription:
        """Return a listener to one run, from its step `after` on, or to all runs of an org that change after `since`.

        A listener to one run is told of the run, its steps and its notes; a listener to all runs only of the runs. It
        has to be closed. Called in the event loop that reads it. Raises `ApiError` for too many: 429 of the org, 503
        of the worker.
        """
        listener = Subscription(org_id, run_id, project_id, after=after, since=since, drained=self._wake.set)
        with self._lock:
            open_ones = tuple([it for it in self._listeners if not it.closed])
            if len(open_ones) >= MAX_LISTENERS:
                raise ApiError(503, f"this worker has {MAX_LISTENERS} listeners already", {"Retry-After": "5"})
            if sum(it.org_id == org_id for it in open_ones) >= MAX_OF_ORG:
                detail = f"this org has {MAX_OF_ORG} listeners at this worker already: close one"
                raise ApiError(429, detail, {"Retry-After": "5"})
            if self._ended.is_set():
                listener.close()
            self._listeners = (*open_ones, listener)
        self._start()
        self._wake.set()
        return listener

    def end_streams(self) -> None:
        """Close all listeners, now and from now on."""
        self._ended.set()
        for listener in self._listeners:
            listener.close()
        self._wake.set()

    def close(self) -> None:
        """End the thread and all listeners. Record the told notes, if the database is available."""
        self.end_streams()
        thread = self._thread
        if thread is not None:
            thread.join()
        with suppress(StorageUnavailable):
            self._notes.write(self._write)

    def _touch(self, org_id: str, run_id: str) -> None:
        with self._lock:
            if self._listeners:
                self._touched.add((org_id, run_id))
        self._start()
        self._wake.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._ended.is_set():
                self._thread = threading.Thread(target=self._poll, name="reasonblocks-live", daemon=True)
                self._thread.start()

    def _poll(self) -> None:
        pause = WAKE_SECONDS
        while not self._ended.wait(pause):
            if not self._wake.wait(POLL_SECONDS if self._is_needed() else None) and not self._is_needed():
                continue
            self._wake.clear()
            pause = WAKE_SECONDS if self._try_round() else min(max(POLL_SECONDS, 2 * pause), RETRY_SECONDS)

    def _is_needed(self) -> bool:
        asked = time.monotonic() - self._asked < ASKED_SECONDS
        return asked or any(not it.closed for it in self._listeners) or len(self._notes) > 0

    def _try_round(self) -> bool:
        """Poll once; return False if the database is not available."""
        try:
            self._notes.write(self._write)
            self._tell_listeners(self._notes.read(lambda: self._storage.notes.waiting(time.time())))
        except StorageUnavailable as exc:
            if not self._failing:
                logger.warning("notes and live pages are delayed: %s", exc)
            self._fail()
        except Exception:  # the thread serves all agents and listeners of the worker
            logger.exception("cannot poll for notes and live pages")
            self._fail()
        else:
            self._failing = False
        return not self._failing

    def _fail(self) -> None:
        """Let the next poll repeat the notifications that this one may have missed."""
        self._failing = True
        self._runs.repeat()
        for listener in self._listeners:
            listener.is_behind = True

    def _write(self, told: Told) -> None:
        self._storage.notes.told(told.org_id, told.run_id, told.note_ids, told.step, time.time())

    def _tell_listeners(self, changed_notes: set[RunKey]) -> None:
        with self._lock:
            self._listeners = tuple([it for it in self._listeners if not it.closed])
            listeners, touched, self._touched = self._listeners, self._touched | changed_notes, set()
        if not listeners:
            self._runs.forget()
            return
        rows = self._runs.next()
        of_org = [it for it in listeners if it.run_id is None]
        of_run: dict[RunKey, list[Subscription]] = {}
        for listener in listeners:
            if listener.run_id is not None:
                of_run.setdefault((listener.org_id, listener.run_id), []).append(listener)
        for listener in of_org:
            _offer_runs(listener, self._shown(listener, rows))
        for key, those in of_run.items():
            if key in rows or key in touched or any(it.is_behind for it in those):
                self._notify_listeners(key, those, rows.get(key))

    def _shown(self, listener: Subscription, rows: Mapping[RunKey, RunRow]) -> list[RunRow]:
        """Return the changed runs of a listener, the oldest change first; for a new listener, those since its time."""
        if not listener.is_behind or listener.since is None:
            found = [row for row in rows.values() if row.org_id == listener.org_id]
        else:
            chosen = RunFilter(project_id=listener.project_id)
            newest, _ = self._storage.runs.list(listener.org_id, chosen, limit=MAX_SHOWN, cursor=None)
            found = [row for row in newest if row.seen > listener.since]
        listener.is_behind = False
        return sorted(found, key=lambda row: row.seen)[-MAX_SHOWN:]

    def _notify_listeners(self, key: RunKey, listeners: Sequence[Subscription], row: RunRow | None) -> None:
        """Notify the listeners that are up to date from one query, and each of the others from its own."""
        row = row or self._storage.runs.get(*key)
        if row is None:
            return
        notes = self._storage.notes.list(*key)
        ready = [it for it in listeners if it.project_id in (None, row.project_id) and it.has_room()]
        current = [it for it in ready if not it.is_behind]
        for group in (current, *[[it] for it in ready if it.is_behind]):
            if group:
                after = min(it.after for it in group)
                steps, has_more = self._storage.runs.page(*key, after=after, limit=STEPS)
                for listener in group:
                    _offer_run(listener, row, steps, notes, is_behind=has_more)
        if any(it.is_behind and it.has_room() for it in ready):
            self._wake.set()


class ChangedRuns:
    """The runs of all orgs that have changed since the last poll."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.forget()

    def forget(self) -> None:
        """Begin again, with the changes of the last seconds."""
        self._newest: float | None = None
        self._known: dict[RunKey, tuple[object, ...]] = {}

    def repeat(self) -> None:
        """Let `next` return the newest changes again."""
        self._known = {}

    def next(self) -> dict[RunKey, RunRow]:
        """Return the runs that have changed."""
        newest = time.time() if self._newest is None else self._newest
        after, found = newest - LATE_SECONDS, []
        while True:
            rows = self._storage.runs.changed(after, MAX_CHANGED)
            found += rows
            earlier = [row.seen for row in rows if row.seen < rows[-1].seen]
            if len(rows) < MAX_CHANGED or not earlier:
                break
            after = earlier[-1]  # a batch's runs have one time, and may be on two pages
        now = {(row.org_id, row.run_id): row for row in found}
        changed = {key: row for key, row in now.items() if self._known.get(key) != _state(row)}
        self._known = {key: _state(row) for key, row in now.items()}
        self._newest = max([newest, *[row.seen for row in found]])
        return changed


def _state(row: RunRow) -> tuple[object, ...]:
    return (row.seen, row.steps, row.outcome, row.started)


def _offer_runs(listener: Subscription, rows: Sequence[RunRow]) -> None:
    for row in rows:
        if listener.project_id in (None, row.project_id):
            listener.offer(Message("run", repr(row.seen), live_run(row)))


def _offer_run(
    listener: Subscription,
    row: RunRow,
    steps: Sequence[Mapping[str, object]],
    notes: Sequence[NoteRow],
    *,
    is_behind: bool,
) -> None:
    """Offer the run, as many of the missing steps as fit, and the changed notes."""
    state = _state(row)
    if state != listener.run_state:
        listener.run_state = state
        listener.offer(Message("run", str(listener.after), live_run(row)))
    for step in steps:
        index = step["step_index"]
        if not isinstance(index, int) or index <= listener.after:
            continue
        if not listener.has_room():
            is_behind = True
            break
        listener.after = index
        listener.offer(Message("step", str(index), live_step(step)))
    listener.is_behind = is_behind
    for note in notes:
        if listener.notes.get(note.note_id) != note.state:
            listener.notes[note.note_id] = note.state
            listener.offer(Message("note", str(listener.after), live_note(note)))
