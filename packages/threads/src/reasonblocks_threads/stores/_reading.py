"""Queries, the same in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import codec
from ..log import fold_all
from ..phases import Phase
from ..ports import ClosedCard, Known, Listed
from ..values import Card, Letter, Thread, ThreadEvent, Work
from . import _rows
from ._rows import Row, id_of, maybe_id
from ._transaction import Transaction


class SqlReading:
    """A consistent look at a database."""

    def __init__(self, db: Transaction) -> None:
        self._db = db

    def _one(self, sql: str, values: Sequence[Any]) -> Row | None:
        found = self._db.all(sql, values)
        return found[0] if found else None

    def _first(self, sql: str, *values: Any) -> str | None:
        found = self._one(sql, values)
        return None if found is None else found[0]

    def head(self, thread_id: str) -> Thread | None:
        found = self._first("SELECT head FROM thread WHERE id = ?", thread_id)
        return None if found is None else self._head_of(thread_id, found)

    def is_stored_as(self, head: Thread, *, with_card: bool = False) -> bool:
        columns = "is_live, phase, stage, version, coalesce(card, '')"
        card = "(SELECT id FROM card WHERE card.thread_id = thread.id AND state = 'open')"
        found = self._one(f"SELECT {columns}, coalesce({card}, '') FROM thread WHERE id = ?", (head.id,))
        if found is None:
            return False
        *stored, listed, card_open = found
        live = int(not head.phase.is_terminal)
        same = stored == [live, head.phase.value, head.stage.value, head.version]
        return same and (listed == card_open or not with_card)

    def _head_of(self, thread_id: str, head: str) -> Thread | None:
        """Return a stored head; the fold of the log if the head is of another fold version or damaged."""
        try:
            return codec.head_of(head)
        except ValueError:
            return fold_all(self._whole_log(thread_id))

    def _whole_log(self, thread_id: str) -> Iterator[ThreadEvent]:
        after = 0
        while found := self.log(thread_id, after=after):
            yield from found
            after = found[-1].seq

    def by_key(self, org_id: str, key: str) -> str | None:
        return self._first("SELECT id FROM thread WHERE org_id = ? AND key = ?", id_of(org_id), id_of(key))

    def by_family(self, org_id: str, family: str) -> str | None:
        sql = "SELECT id FROM thread WHERE org_id = ? AND family = ? AND is_live = 1"
        return self._first(sql, id_of(org_id), id_of(family))

    def last_of_family(self, org_id: str, family: str) -> Thread | None:
        sql = (
            "SELECT id, head FROM thread WHERE org_id = ? AND family = ? "
            "ORDER BY opened_at DESC, is_live DESC, id DESC LIMIT 1"
        )
        found = self._one(sql, (id_of(org_id), id_of(family)))
        return None if found is None else self._head_of(*found)

    def live_count(self, org_id: str) -> int:
        return int(self._db.all("SELECT count(*) FROM thread WHERE org_id = ? AND is_live = 1", (id_of(org_id),))[0][0])

    def log(self, thread_id: str, *, after: int = 0, limit: int = 10_000) -> Sequence[ThreadEvent]:
        sql = f"SELECT {_rows.EVENT} FROM event WHERE thread_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [_rows.event_of(row) for row in self._db.all(sql, (thread_id, after, limit))]

    def feed(self, *, after: int = 0, limit: int = 1_000, org_id: str | None = None) -> Sequence[ThreadEvent]:
        rule, values = _where({"position > ?": after, "org_id = ?": maybe_id(org_id)})
        sql = f"SELECT {_rows.EVENT} FROM event {rule} ORDER BY position LIMIT ?"
        return [_rows.event_of(row) for row in self._db.all(sql, (*values, limit))]

    def listed(
        self,
        *,
        org_id: str | None = None,
        live: bool = True,
        run_id: str | None = None,
        phase: Phase | None = None,
        parent: str | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 100,
    ) -> Sequence[Listed]:
        rules = {
            "org_id = ?": maybe_id(org_id),
            "run_id = ?": maybe_id(run_id),
            "phase = ?": phase and phase.value,
            "parent = ?": parent,
        }
        rule, values = _where(
            rules, *(["is_live = 1"] if live else []), *(["(changed_at, id) < (?, ?)"] * bool(before))
        )
        sql = f"SELECT {_rows.LISTED} FROM thread {rule} ORDER BY changed_at DESC, id DESC LIMIT ?"
        return [self._listed_of(row) for row in self._db.all(sql, (*values, *(before or ()), limit))]

    def _listed_of(self, row: _rows.Row) -> Listed:
        """Return a listed thread; one whose columns are damaged as its head has it."""
        try:
            return _rows.listed_of(row)
        except ValueError:
            head = self.head(row[0])
            if head is None:
                raise
            return _rows.listed_of((*row[:4], head.phase.value, head.stage.value, *row[6:]))

    def cards(
        self, *, org_id: str | None = None, run_id: str | None = None, now: float | None = None, limit: int = 100
    ) -> Sequence[Card]:
        rules = {
            "org_id = ?": maybe_id(org_id),
            "run_id = ?": maybe_id(run_id),
            "(deferred_until IS NULL OR deferred_until <= ?)": now,
        }
        rule, values = _where(rules, "state = 'open'")
        sql = f"SELECT {_rows.CARD} FROM card {rule} ORDER BY opened_at, id LIMIT ?"
        found = (_rows.card_of(row) for row in self._db.all(sql, (*values, limit)))
        return [each.card for each in found if each is not None]

    def card(self, card_id: str) -> ClosedCard | None:
        found = self._one(f"SELECT {_rows.CARD} FROM card WHERE id = ?", (id_of(card_id),))
        return None if found is None else _rows.card_of(found)

    def open_card(self, thread_id: str) -> Card | None:
        found = self._one(f"SELECT {_rows.CARD} FROM card WHERE thread_id = ? AND state = 'open'", (thread_id,))
        card = None if found is None else _rows.card_of(found)
        return None if card is None else card.card

    def work(self, work_id: str) -> Work | None:
        found = self._one(f"SELECT {_rows.WORK} FROM work WHERE id = ?", (id_of(work_id),))
        return None if found is None else _rows.work_of(found)

    def works(self, thread_id: str | None = None) -> Sequence[Work]:
        rule, values = _where({"thread_id = ?": thread_id})
        found = self._db.all(f"SELECT {_rows.WORK} FROM work {rule} ORDER BY number", values)
        return [_rows.work_of(row) for row in found]

    def letters(self, run_id: str, *, state: str = "waiting") -> Sequence[Letter]:
        sql = f"SELECT {_rows.LETTER} FROM letter WHERE run_id = ? AND state = ? ORDER BY at, id"
        return [_rows.letter_of(row) for row in self._db.all(sql, (id_of(run_id), state))]

    def letter(self, letter_id: str) -> Letter | None:
        found = self._one(f"SELECT {_rows.LETTER} FROM letter WHERE id = ?", (id_of(letter_id),))
        return None if found is None else _rows.letter_of(found)

    def known(self, command_id: str) -> Known | None:
        sql = "SELECT thread_id, content, first, last FROM command WHERE id = ?"
        found = self._one(sql, (id_of(command_id),))
        if found is None:
            return None
        thread_id, content, first, last = found
        return Known(command_id=command_id, thread_id=thread_id, content=content, first=first, last=last)

    def blob(self, hash: str) -> str | None:
        return self._first("SELECT text FROM blob WHERE hash = ?", id_of(hash))

    def meta(self, prefix: str = "") -> Mapping[str, str]:
        start = id_of(prefix)
        found = self._db.all("SELECT key, value FROM meta ORDER BY key")
        return {key: value for key, value in found if key.startswith(start)}


def _where(rules: Mapping[str, Any], *fixed: str) -> tuple[str, tuple[Any, ...]]:
    """Return the WHERE clause of the rules whose value is not None, then the fixed ones; and the values."""
    given = {rule: value for rule, value in rules.items() if value is not None}
    all_rules = [*given, *fixed]
    return (f"WHERE {' AND '.join(all_rules)}" if all_rules else ""), tuple(given.values())


def marks(values: Iterable[object]) -> str:
    """Return the marks of a list of parameters."""
    return ",".join("?" for _ in values)
