"""Stores operators' notes: queued, then told, withdrawn, expired or unheard."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import token_hex
from typing import TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, update

from reasonblocks.util.text import storable_text

from ..errors import ApiError
from ..values import NoteRow
from ._clean import id_of
from ._database import Database
from ._tables import notes, runs

MOST_NOTES = 10
"""The most notes of a run."""
MOST_WAITING = 3
"""The most notes of a run that wait at the same time."""
QUEUED = notes.c.state == "queued"
DEFAULT_PROJECT = "default"
COLUMNS = [notes.c[name] for name in NoteRow.__dataclass_fields__ if name != "project_id"]


NoteRows: TypeAlias = list[NoteRow]
"""The notes that a method returns: in the class, `list` is a method."""


class Notes:
    """The notes of all runs. A note that a call contained counts as told, even if it expired before this was known."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, org_id: str, run_id: str, text: str, *, key_id: str, now: float, expires: float) -> NoteRow:
        """Queue a note. Raises `ApiError` 429 if the run has too many."""
        with self._db.writing() as connection:
            note = NoteRow(
                note_id=token_hex(8),
                org_id=org_id,
                run_id=id_of(run_id),
                text=storable_text(text),
                key_id=key_id,
                state="queued",
                created=now,
                expires=expires,
                project_id=_lock_run(connection, org_id, run_id),
            )
            waits = func.count().filter(QUEUED, notes.c.expires > now)
            total, waiting = connection.execute(select(func.count(), waits).where(_of(org_id, run_id))).one()
            if total >= MOST_NOTES:
                raise ApiError(429, f"the run has {total} notes, and takes no more")
            if waiting >= MOST_WAITING:
                raise ApiError(
                    429, f"{waiting} notes of the run are waiting: try again when the agent has been told one"
                )
            connection.execute(notes.insert(), {column.name: getattr(note, column.name) for column in COLUMNS})
        return note

    def list(self, org_id: str, run_id: str) -> NoteRows:
        """Return the notes of a run, the oldest first."""
        return self._rows(_of(org_id, run_id))

    def get(self, org_id: str, run_id: str, note_id: str) -> NoteRow | None:
        return next(iter(self._rows(_of(org_id, run_id), notes.c.note_id == id_of(note_id))), None)

    def withdraw(self, org_id: str, run_id: str, note_id: str, now: float) -> NoteRow | None:
        """Withdraw a waiting note. Return the note with its state, or None if it does not exist."""
        one = and_(_of(org_id, run_id), notes.c.note_id == id_of(note_id))
        with self._db.writing() as connection:
            connection.execute(update(notes).where(one, QUEUED, notes.c.expires > now).values(state="withdrawn"))
            connection.execute(update(notes).where(one, QUEUED).values(state="expired"))
        return self.get(org_id, run_id, note_id)

    def told(self, org_id: str, run_id: str, ids: Sequence[str], step: int | None, now: float) -> None:
        """Mark notes as told, at the first known step."""
        earlier = notes.c.state != "told"
        if step is not None:
            earlier = or_(earlier, notes.c.told_step.is_(None), notes.c.told_step > step)
        chosen = (_of(org_id, run_id), notes.c.note_id.in_([id_of(name) for name in ids]), earlier)
        with self._db.writing() as connection:
            _lock_run(connection, org_id, run_id)
            connection.execute(update(notes).where(*chosen).values(state="told", told_step=step))

    def waiting(self, now: float) -> NoteRows:
        """Return the waiting notes of all orgs, the oldest first."""
        return self._rows(QUEUED, notes.c.expires > now)

    def expire(self, now: float) -> int:
        """Mark the expired notes, and return their number."""
        with self._db.writing() as connection:
            over = update(notes).where(QUEUED, notes.c.expires <= now).values(state="expired")
            return connection.execute(over).rowcount

    def _rows(self, *wanted: ColumnElement[bool]) -> NoteRows:
        of_run = and_(runs.c.org_id == notes.c.org_id, runs.c.run_id == notes.c.run_id)
        project = func.coalesce(runs.c.project_id, DEFAULT_PROJECT).label("project_id")
        query = select(*COLUMNS, project).join_from(notes, runs, of_run, isouter=True).where(*wanted)
        query = query.order_by(notes.c.created, notes.c.note_id)
        with self._db.reading() as connection:
            return [NoteRow(**row) for row in connection.execute(query).mappings()]


def _lock_run(connection: Connection, org_id: str, run_id: str) -> str:
    """Lock the notes of a run for other writers. Return the run's project."""
    one = select(runs.c.project_id).where(runs.c.org_id == org_id, runs.c.run_id == id_of(run_id))
    return connection.execute(one.with_for_update()).scalar() or DEFAULT_PROJECT


def _of(org_id: str, run_id: str) -> ColumnElement[bool]:
    return and_(notes.c.org_id == org_id, notes.c.run_id == id_of(run_id))
