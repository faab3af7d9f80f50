"""Lists, cards, letters, calls, private texts and the rest beside the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reasonblocks_threads.errors import Conflict
from reasonblocks_threads.phases import Phase
from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.values import Letter, Rows, Thread
from tests.threads.stores.lines import ANSWER, card, ending, following, noting, opened, opening, work


def with_card(store: Store, key: str = "k", *, at: float = 1.0, deferred: float | None = None, **how: Any) -> Thread:
    """A thread with an open card."""
    lines = opening(key, at=at, **how)
    return lines.put(store, Rows(card=card(lines.after, 1, opened_at=at, deferred_until=deferred)))


def open_cards(store: Store, **how: Any) -> list[str]:
    with store.read() as reading:
        return [each.thread_id for each in reading.cards(**how)]


def listed(store: Store, **how: Any) -> list[str]:
    with store.read() as reading:
        return [each.id for each in reading.listed(**how)]


def test_a_list_shows_threads_from_columns(store: Store) -> None:
    thread = with_card(store, run_id="r", at=2.0, parent="th_parent")
    thread = noting(thread, at=7.0).put(store)
    with store.read() as reading:
        (found,) = reading.listed()
    assert (found.id, found.org_id, found.title, found.kind) == (thread.id, "default", "About k", "proposal")
    assert (found.phase, found.stage, found.version) == (thread.phase, thread.stage, 2)
    assert (found.run_id, found.parent, found.card) == ("r", "th_parent", f"{thread.id}.1")
    assert (found.opened_at, found.changed_at) == (2.0, 7.0)


def test_a_list_is_filtered(store: Store) -> None:
    first = opened(store, "k1", at=1.0, run_id="r")
    second = opened(store, "k2", at=2.0, parent=first.id)
    third = opened(store, "k3", at=3.0, org_id="other", run_id="r")
    ended = ending(opened(store, "k4", at=0.5), at=4.0).put(store)
    assert listed(store) == [third.id, second.id, first.id]
    assert listed(store, live=False) == [ended.id, third.id, second.id, first.id]
    assert listed(store, org_id="default") == [second.id, first.id]
    assert listed(store, run_id="r") == [third.id, first.id]
    assert listed(store, parent=first.id) == [second.id]
    assert listed(store, phase=Phase.DISMISSED) == []
    assert listed(store, phase=Phase.DISMISSED, live=False) == [ended.id]
    with store.read() as reading:
        assert [reading.live_count(org) for org in ("default", "other", "none")] == [2, 1, 0]


def test_a_list_is_read_in_pages(store: Store) -> None:
    for number in range(7):
        opened(store, f"k{number}", at=float(number // 3))
    whole = listed(store)
    found: list[str] = []
    before = None
    with store.read() as reading:
        while page := reading.listed(before=before, limit=2):
            found.extend(each.id for each in page)
            before = (page[-1].changed_at, page[-1].id)
    assert found == whole
    assert len(set(found)) == 7


def test_a_card_is_read_as_it_was_added(store: Store) -> None:
    thread = with_card(store, run_id="r", at=4.0)
    wanted = card(thread, 1, opened_at=4.0)
    with store.read() as reading:
        assert reading.open_card(thread.id) == wanted
        assert list(reading.cards()) == [wanted]
        found = reading.card(wanted.id)
        assert (reading.open_card("th_none"), reading.card("th_none.1")) == (None, None)
    assert found is not None
    assert (found.card, found.state, found.by, found.answer) == (wanted, "open", None, None)


def test_open_cards_are_listed_from_the_oldest_on(store: Store) -> None:
    late, early = with_card(store, "k1", at=5.0, run_id="r"), with_card(store, "k2", at=2.0)
    other = with_card(store, "k3", at=3.0, org_id="other")
    assert open_cards(store) == [early.id, other.id, late.id]
    assert open_cards(store, limit=1) == [early.id]
    assert open_cards(store, org_id="default") == [early.id, late.id]
    assert open_cards(store, run_id="r") == [late.id]


def test_a_deferred_card_is_shown_when_its_time_has_come(store: Store) -> None:
    deferred, shown = with_card(store, "k1", deferred=9.0), with_card(store, "k2")
    assert open_cards(store, now=8.9) == [shown.id]
    assert sorted(open_cards(store, now=9.0)) == sorted(open_cards(store)) == sorted([deferred.id, shown.id])
    with store.write([shown.id]) as writing:
        found = writing.open_card(shown.id)
        assert found is not None
        writing.put_card(replace(found, deferred_until=20.0))
    assert open_cards(store, now=10.0) == [deferred.id]
    with store.read() as reading:
        found = reading.open_card(shown.id)
    assert found is not None
    assert found.deferred_until == 20.0


def test_an_answered_card_keeps_its_answer_and_a_withdrawn_one_has_none(store: Store) -> None:
    thread = with_card(store)
    for answered in (True, False):
        lines = noting(thread)
        following_card = card(lines.after, lines.after.version)
        with store.write([thread.id]) as writing:
            shown = writing.open_card(thread.id)
            assert shown is not None
            if answered:
                writing.close_card(shown.id, by="mara", answer=ANSWER)
            rows = Rows(withdraw_card=True, card=following_card)
            writing.append(thread, lines.after, lines.events, rows, lines.known())
        with store.read() as reading:
            closed = reading.card(shown.id)
            assert reading.open_card(thread.id) == following_card
            assert reading.listed()[0].card == following_card.id
        assert closed is not None
        expected = ("answered", "mara", "provide") if answered else ("withdrawn", None, None)
        assert (closed.state, closed.by, closed.answer) == expected
        thread = lines.after
    ending(thread).put(store, Rows(withdraw_card=True))
    assert open_cards(store) == []
    assert listed(store, live=False) == [thread.id]


def test_a_list_shows_no_card_that_was_answered(store: Store) -> None:
    thread = with_card(store)
    with store.write([thread.id]) as writing:
        writing.close_card(f"{thread.id}.1", by="mara", answer=ANSWER)
    with store.read() as reading:
        assert reading.listed()[0].card is None
        assert reading.open_card(thread.id) is None


def test_a_thread_has_one_open_card(store: Store) -> None:
    thread = with_card(store)
    lines = noting(thread)
    with pytest.raises(Conflict):
        lines.put(store, Rows(card=card(lines.after, 2)))
    assert open_cards(store) == [thread.id]
    with store.read() as reading:
        assert reading.head(thread.id) == thread


def test_the_doctor_puts_a_card_in_place(store: Store) -> None:
    thread = opened(store)
    for seq, title in ((1, "missing"), (1, "changed"), (3, "another")):
        wanted = card(thread, seq, title=title)
        with store.write([thread.id]) as writing:
            writing.put_card(wanted)
        with store.read() as reading:
            assert list(reading.cards()) == [wanted]
            assert reading.listed()[0].card == wanted.id


def letter(id: str, run: str = "r", at: float = 1.0) -> Letter:
    return Letter(id=id, thread_id="th_1", run_id=run, text=f"about {id}", at=at)


def test_letters_wait_for_their_run_in_order(store: Store) -> None:
    with store.write() as writing:
        for each in (letter("b", at=2.0), letter("a", at=3.0), letter("c", "other"), letter("d", at=2.0)):
            writing.add_letter(each)
    assert [each.id for each in store.waiting("r")] == ["b", "d", "a"]
    assert list(store.waiting("nobody")) == []
    with store.write() as writing:
        writing.change_letter("b", state="told")
        writing.change_letter("a", calls=3)
    with store.read() as reading:
        assert list(reading.letters("r")) == [letter("d", at=2.0), replace(letter("a", at=3.0), calls=3)]
        assert list(reading.letters("r", state="told")) == [replace(letter("b", at=2.0), state="told")]
        assert reading.letter("a") == replace(letter("a", at=3.0), calls=3)
        assert reading.letter("none") is None
    assert [each.id for each in store.waiting("r")] == ["d", "a"]
    with pytest.raises(Conflict), store.write() as writing:
        writing.add_letter(letter("a"))


def test_a_letter_of_another_store_is_seen(path: Any) -> None:
    one, other = open_store(path), open_store(path)
    try:
        for number in range(3):
            assert len(one.waiting("r")) == number
            with other.write() as writing:
                writing.add_letter(letter(f"l{number}"))
            assert len(one.waiting("r")) == number + 1
            assert len(other.waiting("r")) == number + 1
    finally:
        one.close()
        other.close()


def test_private_texts_of_a_thread_are_erased(store: Store) -> None:
    thread = opened(store, "k1")
    hidden = {"id": "e", "label": "l", "text": "", "blob": "h1"}
    following(thread, ("evidence_added", {"items": [hidden, {**hidden, "blob": "h2"}]})).put(store)
    opened(store, "k2")
    with store.write() as writing:
        for hash in ("h1", "h2", "h3"):
            writing.put_blob(hash, f"text of {hash}")
        writing.put_blob("h1", "another")
    with store.write() as writing:
        assert writing.blob("h1") == "text of h1"
        assert writing.erase_blobs(thread.id) == 2
        assert writing.erase_blobs(thread.id) == 0
    with store.read() as reading:
        assert [reading.blob(hash) for hash in ("h1", "h2", "h3", "h4")] == [None, None, "text of h3", None]


def test_meta_is_read_by_prefix(store: Store) -> None:
    with store.write() as writing:
        writing.set_meta({"action:a": "1", "action:b%": "2", "other": "3"})
        writing.set_meta({"action:a": "4"})
    with store.read() as reading:
        assert dict(reading.meta("action:")) == {"action:a": "4", "action:b%": "2"}
        assert dict(reading.meta()) == {"action:a": "4", "action:b%": "2", "other": "3"}
        assert dict(reading.meta("%")) == {}


def test_rows_of_one_thread_do_not_touch_another(store: Store) -> None:
    mine, other = with_card(store, "k1"), with_card(store, "k2")
    with store.write() as writing:
        writing.add_works(other.id, 1, [work("begin")])
    lines = noting(mine)
    lines.put(store, Rows(withdraw_card=True, cancel=("begin",)))
    assert open_cards(store) == [other.id]
    with store.read() as reading:
        assert [each.thread_id for each in reading.works()] == [other.id]
