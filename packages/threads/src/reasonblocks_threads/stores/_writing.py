"""Changes, the same in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from .. import codec
from ..errors import Conflict
from ..phases import AnswerName
from ..ports import Known
from ..values import Card, Letter, NewWork, Rows, Thread, ThreadEvent, Work
from . import _rows
from ._reading import SqlReading, marks
from ._rows import id_of, maybe_id, number
from ._transaction import Duplicate

LEASE_S = 30.0
"""Seconds of a lease whose work and kind name no other."""

_NEW_THREAD = f"INSERT INTO thread VALUES ({marks(range(16))})"
_CHANGED = (
    "UPDATE thread SET is_live = ?, phase = ?, stage = ?, version = ?, card = ?, changed_at = ?, head = ? "
    "WHERE id = ? AND version = ?"
)
_EVENT = (
    "INSERT INTO event (org_id, thread_id, seq, kind, form, actor_kind, actor, at, command_id, caused_by, data) "
    f"VALUES ({marks(range(11))})"
)
_CARD = (
    "INSERT INTO card (id, org_id, thread_id, run_id, opened_at, deferred_until, state, body) "
    "VALUES (?, ?, ?, ?, ?, ?, 'open', ?)"
)
_WORK = (
    "INSERT INTO work (id, org_id, thread_id, kind, entered, due_at, urgency, rank, attempts, most, lease_s, needs, "
    f"error, data) VALUES ({marks(range(14))})"
)
_OPEN = "thread_id = ? AND state = 'open'"


class SqlWriting(SqlReading):
    """A transaction. After an exception it can only be rolled back."""

    def append(
        self, before: Thread | None, after: Thread, events: Sequence[ThreadEvent], rows: Rows, command: Known
    ) -> Sequence[Work]:
        _check_dense(before, after, events)
        with self._unique(after.id):
            if events:
                self._db.hold_positions()
                self._put_head(before, after, events, rows)
                self._db.many(_EVENT, [_rows.event_row(after.org_id, event) for event in events])
            known = (id_of(command.command_id), command.thread_id, command.content, command.first, command.last)
            self._db.change(f"INSERT INTO command VALUES ({marks(known)})", known)
            return self._put_rows(after, rows)

    @contextmanager
    def _unique(self, thread_id: str) -> Iterator[None]:
        """Raise `Conflict` for a row whose unique key exists already."""
        try:
            yield
        except Duplicate as error:
            self._db.error = Conflict(thread_id, f"a unique key exists already ({error})")
            raise self._db.error from error

    def _put_head(self, before: Thread | None, after: Thread, events: Sequence[ThreadEvent], rows: Rows) -> None:
        head, changed_at, live = _rows.head_json(after), events[-1].at, int(not after.phase.is_terminal)
        phase, stage = after.phase.value, after.stage.value
        if before is None:
            cause = after.cause
            row = (
                after.id, id_of(after.org_id), id_of(cause.key), maybe_id(cause.family), live, cause.kind, cause.title,
                phase, stage, after.version, maybe_id(cause.run_id), after.parent, rows.card and rows.card.id,
                after.opened_at, changed_at, head,
            )  # fmt: skip
            self._db.change(_NEW_THREAD, row)
            return
        card = rows.card.id if rows.card else None if rows.withdraw_card else self._card_id(after.id)
        values = (live, phase, stage, after.version, card, changed_at, head, after.id, before.version)
        if self._db.change(_CHANGED, values) != 1:
            raise Conflict(after.id, f"it is not at version {before.version} any more")

    def _card_id(self, thread_id: str) -> str | None:
        return self._first("SELECT card FROM thread WHERE id = ?", thread_id)

    def _put_rows(self, after: Thread, rows: Rows) -> Sequence[Work]:
        if rows.withdraw_card:
            self._db.change(f"UPDATE card SET state = 'withdrawn' WHERE {_OPEN}", (after.id,))
        if rows.cancel:
            self.remove_works(after.id, rows.cancel)
        if rows.card is not None:
            self._add_card(rows.card)
        return self._add_works(after.id, after.org_id, after.entered, rows.works)

    def _add_card(self, card: Card) -> None:
        body = codec.card_json(card)
        run_id, org_id = maybe_id(card.run_id), id_of(card.org_id)
        self._db.change(_CARD, (card.id, org_id, card.thread_id, run_id, card.opened_at, card.deferred_until, body))

    def _add_works(self, thread_id: str, org_id: str, entered: int, works: Sequence[NewWork]) -> Sequence[Work]:
        added = [_rows.new_work(thread_id, entered, work) for work in works]
        if added:
            self._db.many(_WORK, [_rows.work_row(org_id, work) for work in added])
        return added

    def close_card(self, card_id: str, *, by: str, answer: AnswerName) -> None:
        sql = "UPDATE card SET state = 'answered', answered_by = ?, answer = ? WHERE id = ? AND state = 'open'"
        self._db.change(sql, (by, answer, card_id))
        self._db.change("UPDATE thread SET card = NULL WHERE card = ? AND id = ?", (card_id, _thread_of(card_id)))

    def withdraw_card(self, thread_id: str) -> None:
        self._db.change(f"UPDATE card SET state = 'withdrawn' WHERE {_OPEN}", (thread_id,))
        self._db.change("UPDATE thread SET card = NULL WHERE id = ?", (thread_id,))

    def put_card(self, card: Card) -> None:
        with self._unique(card.thread_id):
            self._db.change(f"UPDATE card SET state = 'withdrawn' WHERE {_OPEN} AND id <> ?", (card.thread_id, card.id))
            self._db.change("DELETE FROM card WHERE id = ?", (card.id,))
            self._add_card(card)
            self._db.change("UPDATE thread SET card = ? WHERE id = ?", (card.id, card.thread_id))

    def claim(
        self,
        *,
        now: float,
        lease: str,
        has: Collection[str],
        leases: Mapping[str, float],
        most: Mapping[str, int],
        org_id: str | None = None,
    ) -> Work | None:
        able = sorted({"", *map(id_of, has)})
        limit, limits = _by_kind(most, "1")
        values = [now, now, *limits, *able]
        rule = f"attempts < coalesce(most, {limit}) AND needs IN ({marks(able)})"
        if org_id is not None:
            rule, values = f"{rule} AND org_id = ?", [*values, id_of(org_id)]
        sql = (
            f"SELECT number, lease_s, {_rows.WORK} FROM work WHERE due_at <= ? "
            f"AND (leased_until IS NULL OR leased_until <= ?) AND {rule} "
            f"ORDER BY rank, due_at, number LIMIT 1{self._db.skip_locked}"
        )
        found = self._one(sql, values)
        if found is None:
            return None
        work = _rows.work_of(found[2:])
        until = now + (leases.get(work.kind, LEASE_S) if found[1] is None else found[1])
        lease_sql = "UPDATE work SET lease = ?, leased_until = ?, attempts = attempts + 1 WHERE number = ?"
        self._db.change(lease_sql, (lease, until, found[0]))
        return replace(work, lease=lease, leased_until=until, attempts=work.attempts + 1)

    def expired(self, *, now: float, most: Mapping[str, int], org_id: str | None = None) -> Sequence[Work]:
        limit, limits = _by_kind(most, "1")
        rule, values = ("", ()) if org_id is None else ("AND org_id = ? ", (id_of(org_id),))
        sql = (
            f"SELECT {_rows.WORK} FROM work WHERE attempts > 0 AND attempts >= coalesce(most, {limit}) "
            f"AND (leased_until IS NULL OR leased_until <= ?) {rule}ORDER BY rank, due_at, number"
        )
        return [_rows.work_of(row) for row in self._db.all(sql, (*limits, now, *values))]

    def finish_work(self, work_id: str, lease: str) -> bool:
        return self._db.change("DELETE FROM work WHERE id = ? AND lease = ?", (work_id, lease)) > 0

    def put_back(self, work_id: str, lease: str, *, due_at: float, error: str) -> bool:
        sql = (
            f"UPDATE work SET lease = NULL, leased_until = NULL, due_at = ?, error = ?, {_RANK} "
            "WHERE id = ? AND lease = ?"
        )
        return self._db.change(sql, (due_at, error, due_at, work_id, lease)) > 0

    def move_timer(self, thread_id: str, due_at: float) -> None:
        sql = (
            f"UPDATE work SET due_at = ?, lease = NULL, leased_until = NULL, {_RANK} "
            "WHERE thread_id = ? AND kind = 'timeout'"
        )
        self._db.change(sql, (due_at, due_at, thread_id))

    def add_works(self, thread_id: str, entered: int, works: Sequence[NewWork]) -> None:
        org_id = self._first("SELECT org_id FROM thread WHERE id = ?", thread_id)
        if org_id is None:
            raise Conflict(thread_id, "it does not exist")
        with self._unique(thread_id):
            for work in works:  # a row whose kind is damaged may have its id
                id = _rows.new_work(thread_id, entered, work).id
                self._db.change("DELETE FROM work WHERE id = ? AND kind <> ?", (id, work.kind))
            self._add_works(thread_id, org_id, entered, works)

    def remove_works(self, thread_id: str, kinds: Collection[str] | None = None) -> int:
        if kinds is None:
            return self._db.change("DELETE FROM work WHERE thread_id = ?", (thread_id,))
        sql = f"DELETE FROM work WHERE thread_id = ? AND kind IN ({marks(kinds)})"
        return self._db.change(sql, (thread_id, *kinds)) if kinds else 0

    def add_letter(self, letter: Letter) -> None:
        values = (
            id_of(letter.id), letter.thread_id, id_of(letter.run_id), letter.text, letter.at, letter.state,
            number(letter.calls),
        )  # fmt: skip
        with self._unique(letter.thread_id):
            self._db.change(f"INSERT INTO letter VALUES ({marks(values)})", values)

    def change_letter(self, letter_id: str, *, state: str | None = None, calls: int | None = None) -> None:
        sql = "UPDATE letter SET state = coalesce(?, state), calls = coalesce(?, calls) WHERE id = ?"
        self._db.change(sql, (state, calls if calls is None else number(calls), id_of(letter_id)))

    def put_blob(self, hash: str, text: str) -> None:
        self._db.change("INSERT INTO blob VALUES (?, ?) ON CONFLICT (hash) DO NOTHING", (id_of(hash), text))

    def erase_blobs(self, thread_id: str) -> int:
        sql = "SELECT data FROM event WHERE thread_id = ? AND kind IN ('thread_opened', 'evidence_added')"
        hashes = {
            hash for (data,) in self._db.all(sql, (thread_id,)) for hash in codec.blobs_of(_rows.parse_json(data))
        }
        self._db.erases = True
        return sum(self._db.change("DELETE FROM blob WHERE hash = ?", (id_of(hash),)) for hash in sorted(hashes))

    def set_meta(self, values: Mapping[str, str]) -> None:
        sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._db.many(sql, [(id_of(key), value) for key, value in sorted(values.items())])

    def set_head(self, head: Thread) -> None:
        card = "(SELECT card.id FROM card WHERE card.thread_id = thread.id AND card.state = 'open')"
        sql = f"UPDATE thread SET is_live = ?, phase = ?, stage = ?, version = ?, head = ?, card = {card} WHERE id = ?"
        live = int(not head.phase.is_terminal)
        values = (live, head.phase.value, head.stage.value, head.version, _rows.head_json(head))
        with self._unique(head.id):
            self._db.change(sql, (*values, head.id))


_RANK = f"rank = urgency * {_rows.AGING_S} + ?"


def _check_dense(before: Thread | None, after: Thread, events: Sequence[ThreadEvent]) -> None:
    start = 1 if before is None else before.version + 1
    found = [event.seq for event in events]
    if found != list(range(start, start + len(events))) or (events and after.version != found[-1]):
        raise ValueError(f"{after.id}: events {found} do not follow version {start - 1} up to {after.version}")


def _by_kind(most: Mapping[str, int], default: str) -> tuple[str, list[object]]:
    """Return an expression for a number by kind, and its parameters."""
    if not most:
        return default, []
    cases = " ".join("WHEN ? THEN CAST(? AS INTEGER)" for _ in most)
    return f"CASE kind {cases} ELSE {default} END", [value for pair in most.items() for value in pair]


def _thread_of(card_id: str) -> str:
    """Return the thread of a card, whose id is the thread's and a seq."""
    return card_id.rpartition(".")[0]
