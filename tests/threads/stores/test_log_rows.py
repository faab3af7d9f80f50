"""The log and its head: what is appended is there whole, in order, once, and never changes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reasonblocks_threads.errors import Conflict, StoreUnavailable
from reasonblocks_threads.log import fold_all
from reasonblocks_threads.phases import Phase
from reasonblocks_threads.ports import Known, Store, Writing
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.stores._writing import SqlWriting
from reasonblocks_threads.values import Actor, Letter, Rows, ThreadEvent
from tests.threads.stores.lines import card, ending, following, head, noting, opened, opening, work

TABLES = ("thread", "event", "command", "card", "work", "letter", "blob", "meta")


def raw(store: Store, sql: str, *values: object) -> list[Any]:
    """The rows of a statement of ours, in a transaction of its own."""
    with store.write() as writing:
        assert isinstance(writing, SqlWriting)
        return [tuple(row) for row in writing._db.all(sql, values)]


def change(store: Store, sql: str, *values: object) -> None:
    with store.write() as writing:
        assert isinstance(writing, SqlWriting)
        writing._db.change(sql, values)


def everything(store: Store) -> dict[str, list[Any]]:
    return {table: sorted(raw(store, f"SELECT * FROM {table}"), key=str) for table in TABLES}


def log(store: Store, id: str) -> list[ThreadEvent]:
    with store.read() as reading:
        return list(reading.log(id))


def test_a_thread_is_read_as_it_was_appended(store: Store) -> None:
    lines = opening("k", run_id="r", family="f", at=3.0)
    thread = lines.put(store, Rows(works=(work(),)))
    with store.read() as reading:
        assert reading.head(thread.id) == thread
        assert [replace(event, position=None) for event in reading.log(thread.id)] == list(lines.events)
        assert reading.by_key("default", "k") == thread.id
        assert reading.by_family("default", "f") == thread.id
        assert (reading.head("th_none"), reading.by_key("other", "k"), reading.by_family("default", "g")) == (None,) * 3
        assert list(reading.log("th_none")) == []


def test_a_log_is_read_in_parts(store: Store) -> None:
    thread = noting(opened(store), 9).put(store)
    with store.read() as reading:
        assert [event.seq for event in reading.log(thread.id, after=4, limit=3)] == [5, 6, 7]
        assert [event.seq for event in reading.log(thread.id, after=10)] == []


def test_a_head_of_another_fold_version_or_a_damaged_one_is_folded_anew(store: Store) -> None:
    thread = noting(opened(store, family="f"), 2).put(store)
    for stored in ('{"fold":0}', "no JSON"):
        change(store, "UPDATE thread SET head = ? WHERE id = ?", stored, thread.id)
        assert head(store, thread.id) == thread
        with store.read() as reading:
            assert reading.last_of_family("default", "f") == thread


def test_an_append_to_another_version_conflicts_and_changes_nothing(store: Store) -> None:
    stale = opened(store)
    thread = noting(stale).put(store)
    before = everything(store)
    with pytest.raises(Conflict, match="version 1") as caught:
        noting(stale, command="another").put(store, Rows(works=(work(),)))
    assert caught.value.thread_id == thread.id
    assert everything(store) == before


def test_an_append_with_a_gap_is_refused(store: Store) -> None:
    thread = opened(store)
    lines = noting(thread, 2)
    before = everything(store)
    for events in (lines.events[1:], lines.events[:1], (lines.events[1], lines.events[0])):
        with pytest.raises(ValueError, match="do not follow version 1"), store.write() as writing:
            writing.append(thread, lines.after, events, Rows(), lines.known())
    assert everything(store) == before


def test_the_database_itself_refuses_a_gap(store: Store) -> None:
    thread = opened(store)
    row = raw(store, "SELECT org_id, thread_id, kind, form, actor_kind, actor, at, command_id, data FROM event")[0]
    columns = "org_id, thread_id, kind, form, actor_kind, actor, at, command_id, data"
    for seq in (3, 1, 0):
        insert = f"INSERT INTO event ({columns}, seq) VALUES ({', '.join('?' for _ in range(10))})"
        with pytest.raises(StoreUnavailable, match="gap"):
            change(store, insert, *row, seq)
    assert len(log(store, thread.id)) == 1


@pytest.mark.parametrize("sql", ["UPDATE event SET at = 0", "DELETE FROM event"])
def test_the_database_itself_refuses_to_change_the_log(store: Store, sql: str) -> None:
    thread = opened(store)
    before = everything(store)
    with pytest.raises(StoreUnavailable, match="append-only"):
        change(store, sql)
    assert everything(store) == before
    noting(thread).put(store)


def test_a_key_has_one_thread_in_an_organisation(store: Store) -> None:
    opened(store, "k", org_id="a")
    opened(store, "k", org_id="b")
    before = everything(store)
    lines = opening("k", org_id="a")
    for again in (lines, replace(lines, after=replace(lines.after, id="th_other"))):
        with pytest.raises(Conflict, match="key"):
            again.put(store, command="another")
    assert everything(store) == before


def test_a_family_has_one_live_thread(store: Store) -> None:
    first = opened(store, "k1", family="f")
    with pytest.raises(Conflict):
        opened(store, "k2", family="f")
    opened(store, "k3", family="f", org_id="other")
    ending(first).put(store)
    with store.read() as reading:
        assert reading.by_family("default", "f") is None
        assert reading.last_of_family("default", "f") == head(store, first.id)
        assert reading.last_of_family("default", "g") is None
    second = opened(store, "k4", family="f", at=5.0)
    with store.read() as reading:
        assert reading.by_family("default", "f") == second.id
        assert reading.last_of_family("default", "f") == second


def test_a_command_is_known_with_what_it_wrote(store: Store) -> None:
    thread = noting(opened(store), 3, command="mine").put(store)
    with store.read() as reading:
        assert reading.known("mine") == Known(command_id="mine", thread_id=thread.id, content="asked", first=2, last=4)
        assert reading.known("yours") is None


def test_a_command_without_events_is_known_and_changes_no_head(store: Store) -> None:
    thread = opened(store)
    known = Known(command_id="idle", thread_id=thread.id, content="asked", first=2, last=1)
    with store.write([thread.id]) as writing:
        writing.append(thread, thread, (), Rows(), known)
    with store.read() as reading:
        assert reading.known("idle") == known
        assert reading.head(thread.id) == thread


def test_a_command_is_stored_once(store: Store) -> None:
    thread = noting(opened(store), command="mine").put(store)
    before = everything(store)
    with pytest.raises(Conflict):
        noting(thread, command="mine").put(store)
    assert everything(store) == before


def test_an_error_in_a_transaction_leaves_nothing(store: Store) -> None:
    thread = opened(store, rows=Rows(works=(work(),)))
    before = everything(store)
    lines = noting(thread)

    class Stopped(BaseException):
        pass

    def stop() -> None:
        with store.write([thread.id]) as writing:
            change_all(writing)
            raise Stopped

    def change_all(writing: Writing) -> None:
        rows = Rows(cancel=("begin",), works=(work("infer"),), card=card(lines.after, 2))
        writing.append(thread, lines.after, lines.events, rows, lines.known())
        writing.add_letter(Letter(id="l", thread_id=thread.id, run_id="r", text="t", at=1.0))
        writing.put_blob("h", "secret")
        writing.set_meta({"a": "b"})

    with pytest.raises(Stopped):
        stop()
    assert everything(store) == before
    lines.put(store)


def test_a_transaction_whose_statement_failed_is_undone_even_if_the_error_was_caught(store: Store) -> None:
    thread = opened(store, "k1", family="f")
    before = everything(store)
    twin = opening("k2", family="f")

    def go_on() -> None:
        with store.write() as writing:
            writing.set_meta({"a": "b"})
            with pytest.raises(Conflict):
                writing.append(None, twin.after, twin.events, Rows(), twin.known())

    with pytest.raises(Conflict):
        go_on()
    assert everything(store) == before
    noting(thread).put(store)


def test_a_transaction_whose_error_of_the_database_was_caught_is_undone(store: Store) -> None:
    opened(store)
    before = everything(store)

    def go_on() -> None:
        with store.write() as writing:
            assert isinstance(writing, SqlWriting)
            writing.set_meta({"a": "b"})
            with pytest.raises(StoreUnavailable):
                writing._db.change("DELETE FROM event")

    with pytest.raises(StoreUnavailable, match="append-only"):
        go_on()
    assert everything(store) == before


def test_a_transaction_is_of_no_use_after_its_end(store: Store) -> None:
    with store.write() as writing:
        pass
    with store.read() as reading:
        pass
    with pytest.raises(RuntimeError, match="over"):
        writing.set_meta({"a": "b"})
    with pytest.raises(RuntimeError, match="over"):
        reading.meta()


def test_a_read_sees_one_state_while_others_write(database: str) -> None:
    one, other = open_store(database), open_store(database)
    try:
        thread = opened(one)
        with other.read() as reading:
            assert reading.head(thread.id) == thread
            after = noting(thread).put(one)
            assert reading.head(thread.id) == thread
            assert len(reading.log(thread.id)) == 1
        assert head(other, thread.id) == after
    finally:
        one.close()
        other.close()


def test_the_feed_has_every_event_once_in_order(store: Store) -> None:
    first, second = opened(store, "k1", org_id="a"), opened(store, "k2", org_id="b")
    first = noting(first, 2).put(store)
    noting(second).put(store)
    found: list[ThreadEvent] = []
    with store.read() as reading:
        while part := reading.feed(after=(found[-1].position or 0) if found else 0, limit=2):
            found.extend(part)
        mine = reading.feed(org_id="a")
    positions = [event.position or 0 for event in found]
    assert positions == sorted(set(positions))
    assert [(event.thread_id, event.seq) for event in found] == [
        (first.id, 1), (second.id, 1), (first.id, 2), (first.id, 3), (second.id, 2),
    ]  # fmt: skip
    assert [event.seq for event in mine] == [1, 2, 3]


def test_a_head_is_replaced_as_the_doctor_does(store: Store) -> None:
    thread = opened(store)
    ended = ending(thread).put(store)
    change(store, "UPDATE thread SET head = ?, phase = 'proposed', is_live = 1", '{"fold":0}')
    with store.write([thread.id]) as writing:
        writing.set_head(ended)
    with store.read() as reading:
        assert reading.head(thread.id) == ended
        assert [each.phase for each in reading.listed(live=False)] == [Phase.DISMISSED]
        assert reading.live_count("default") == 0


HOSTILE = ("nul \0 in it", "a lone \ud800 surrogate", "\u202e bidi \x1b[31m", "x" * 3_000, "é€😀" * 300)


@pytest.mark.parametrize("text", HOSTILE, ids=["nul", "surrogate", "bidi", "long", "wide"])
def test_any_text_is_stored(store: Store, text: str) -> None:
    thread = opened(store, text, title=text, run_id=text, family=text)
    thread = noting(thread, text=text, by=Actor.person(text), command=text).put(store)
    lines = following(thread, ("provided", {"stage": "intent", "text": text}), by=Actor.person(text))
    thread = lines.put(store, Rows(card=card(lines.after, 3, title=text, run_id=text)))
    with store.write() as writing:
        writing.set_meta({f"m{text}": text})
        writing.put_blob("h", text)
        writing.add_letter(Letter(id=text, thread_id=thread.id, run_id=text, text=text, at=1.0))
        writing.close_card(f"{thread.id}.3", by=text, answer="provide")
    events = log(store, thread.id)
    assert fold_all(events) == head(store, thread.id) == thread
    assert events[1].data == {"text": text}
    assert events[1].actor.name == text
    with store.read() as reading:
        assert reading.by_key("default", text) == thread.id
        assert reading.by_family("default", text) == thread.id
        assert reading.known(text) is not None
        assert [each.id for each in reading.listed(run_id=text)] == [thread.id]
        closed = reading.card(f"{thread.id}.3")
        assert closed is not None
        assert closed.card.title == text
        assert (len(reading.letters(text)), len(reading.meta(f"m{text}"))) == (1, 1)
        assert reading.letter(text) is not None
        assert len(reading.blob("h") or "") == len(text)
    assert len(store.waiting(text)) == 1


def test_any_number_is_stored(store: Store) -> None:
    huge = 10**400
    thread = noting(opened(store), text="n").put(store)
    lines = following(thread, ("noted", {"text": "n", "huge": huge, "deep": json.loads("[" * 60 + "]" * 60)}))
    lines.put(store, Rows(works=(work("infer", urgency=-huge, data={"tokens": huge}),)))
    with store.write() as writing:
        writing.add_letter(Letter(id="l", thread_id=thread.id, run_id="r", text="t", at=1e300, calls=huge))
    with store.read() as reading:
        assert reading.log(thread.id)[-1].data["huge"] == huge
        assert reading.works()[0].data == {"tokens": huge}
