"""Notes wait in memory, and told notes are recorded as soon as the database is available."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonblocks_server.errors import StorageUnavailable
from reasonblocks_server.live import Live
from reasonblocks_server.live._live import MAX_CHANGED, ChangedRuns
from reasonblocks_server.live._notes import MAX_UNWRITTEN, Told, WaitingNotes
from reasonblocks_server.storage import Storage
from reasonblocks_server.values import NoteRow
from tests.server.routes.world import start, until
from tests.server.running import stored

ORG, RUN = "org", "run"


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with stored(tmp_path) as found:
        found.runs.ingest(ORG, [start(RUN)], now=time.time())
        yield found


@pytest.fixture
def live(storage: Storage) -> Iterator[Live]:
    live = Live(storage)
    yield live
    live.close()


def add(storage: Storage, text: str = "a", seconds: float = 60.0) -> NoteRow:
    now = time.time()
    return storage.notes.add(ORG, RUN, text, key_id="key", now=now, expires=now + seconds)


def note(note_id: str, created: float = 0.0, expires: float = 10.0) -> NoteRow:
    return NoteRow(
        note_id=note_id,
        org_id=ORG,
        run_id=RUN,
        text=f"text {note_id}",
        key_id="key",
        state="queued",
        created=created,
        expires=expires,
    )


def ids(live: Live, *told: str) -> list[str]:
    return [one.id for one in live.waiting(ORG, RUN, told)]


def test_a_note_of_another_worker_arrives(storage: Storage, live: Live) -> None:
    assert ids(live) == []
    row = add(storage)
    until(lambda: ids(live) == [row.note_id])


def test_a_note_that_another_worker_has_told_waits_no_longer(storage: Storage, live: Live) -> None:
    row = add(storage)
    until(lambda: ids(live) == [row.note_id])
    storage.notes.told(ORG, RUN, [row.note_id], 1, time.time())
    until(lambda: ids(live) == [])


def test_told_notes_are_written_when_the_database_is_back(
    storage: Storage, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = add(storage, "1"), add(storage, "2")
    until(lambda: ids(live) == [first.note_id])
    gone = [True]
    written = storage.notes.told

    def told(*given: object) -> None:
        if gone:
            raise StorageUnavailable("it is gone")
        written(*given)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(storage.notes, "told", told)
    assert ids(live, first.note_id) == [second.note_id]
    until(lambda: live._failing)
    assert ids(live) == [second.note_id]
    gone.clear()
    until(lambda: [row.state for row in storage.notes.list(ORG, RUN)] == ["told", "queued"])


def test_no_changed_run_is_lost_between_two_queries(storage: Storage) -> None:
    now, half = time.time(), MAX_CHANGED * 6 // 10
    for first, at in ((0, now - 1), (half, now)):
        events = [{"event": "run_finish", "run_id": f"r{number}", "outcome": "x", "timestamp": 1.0}
                  for number in range(first, first + half)]  # fmt: skip
        storage.runs.ingest("many", events, now=at)
    assert len([key for key in ChangedRuns(storage).next() if key[0] == "many"]) == 2 * half


def test_closing_records_the_told_notes(storage: Storage, live: Live) -> None:
    row = add(storage)
    live.note_added(row)
    assert ids(live, row.note_id) == []
    live.close()
    assert [one.state for one in storage.notes.list(ORG, RUN)] == ["told"]


def test_closing_with_a_database_that_is_gone_ends(storage: Storage) -> None:
    live = Live(storage)
    live.note_added(add(storage))
    storage.close()
    ids(live, "x")
    live.close()


class TestWaitingNotes:
    """The notes in memory alone, with a clock that stands still."""

    def test_the_oldest_note_waits_until_it_expires(self) -> None:
        now = [0.0]
        notes = WaitingNotes(lambda: now[0])
        notes.add(note("a", created=0, expires=5))
        notes.add(note("b", created=1, expires=10))
        found = []
        for now[0] in (0, 5, 10):
            oldest = notes.oldest(ORG, RUN)
            found.append(oldest and oldest.id)
        assert found == ["a", "b", None]

    def test_a_query_that_began_before_a_note_was_told_does_not_restore_it(self) -> None:
        notes = WaitingNotes(lambda: 0.0)
        notes.add(note("a"))

        def slow() -> list[NoteRow]:
            notes.tell(Told(org_id=ORG, run_id=RUN, note_ids=("a",), step=None))
            notes.add(note("b", created=1))
            return [note("a")]

        notes.read(slow)
        oldest = notes.oldest(ORG, RUN)
        assert oldest is not None
        assert oldest.id == "b"
        notes.write(lambda told: None)
        assert notes._gone == {"a": None}
        notes.read(lambda: [note("b", created=1)])
        assert notes._gone == {}, "nothing is kept of a note that no reading can have"

    def test_a_query_returns_the_runs_whose_notes_differ(self) -> None:
        notes = WaitingNotes(lambda: 0.0)
        assert notes.read(lambda: [note("a")]) == {(ORG, RUN)}
        assert notes.read(lambda: [note("a")]) == set()
        assert notes.read(list) == {(ORG, RUN)}

    def test_only_notes_that_wait_are_told(self) -> None:
        notes = WaitingNotes(lambda: 0.0)
        notes.add(note("a"))
        written: list[Told] = []
        assert notes.tell(Told(org_id=ORG, run_id=RUN, note_ids=("a", "unknown"), step=3))
        assert not notes.tell(Told(org_id=ORG, run_id=RUN, note_ids=("a",), step=4))
        assert not notes.tell(Told(org_id="other", run_id=RUN, note_ids=("a",), step=4))
        notes.write(written.append)
        assert written == [Told(org_id=ORG, run_id=RUN, note_ids=("a",), step=3)]

    def test_the_notes_that_are_not_recorded_are_bounded(self) -> None:
        notes = WaitingNotes(lambda: 0.0)
        for number in range(MAX_UNWRITTEN + 5):
            notes.add(note(str(number)))
            notes.tell(Told(org_id=ORG, run_id=RUN, note_ids=(str(number),), step=None))

        def fails(told: Told) -> None:
            raise StorageUnavailable("it is gone")

        with pytest.raises(StorageUnavailable):
            notes.write(fails)
        assert len(notes) == MAX_UNWRITTEN
