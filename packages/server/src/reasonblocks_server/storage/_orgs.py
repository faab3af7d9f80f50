"""Stores the orgs' settings, and deletes data older than the retention."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import ColumnElement, Connection, and_, delete, select

from ..values import Body
from ._database import Database, upsert
from ._notes import Notes
from ._tables import METADATA, audit, keys, links, logins, notes, orgs, runs, steps, traces

RETENTION_DAYS = 30
"""The days for which an org's runs are kept, if it has not set another number."""
DAY_S = 86_400.0
AT_ONCE = 200
"""The most runs that one transaction deletes."""
AUDIT_DAYS = 365
"""The days for which a change stays in the audit."""


class Orgs:
    """The settings of all orgs."""

    def __init__(self, database: Database, retention_days: int) -> None:
        self._db, self._days = database, retention_days

    def get(self, org_id: str) -> Body:
        """Return `{"org_id", "retention_days"}`."""
        with self._db.reading() as connection:
            days = connection.execute(select(orgs.c.retention_days).where(orgs.c.org_id == org_id)).scalar()
        return {"org_id": org_id, "retention_days": self._days if days is None else days}

    def put(self, org_id: str, retention_days: int) -> None:
        with self._db.writing() as connection:
            upsert(connection, orgs, {"org_id": org_id, "retention_days": retention_days})

    def erase(self, org_id: str) -> int:
        """Delete all rows of an org, its keys last. Return the number of runs."""
        count = self._drop(runs.c.org_id == org_id)
        return count + self._db.repeated(lambda connection: _erase(connection, org_id))

    def sweep(self, now: float) -> int:
        """Delete old runs, traces and audit entries, and expired logins and links. Return the number of runs."""
        Notes(self._db).expire(now)
        with self._db.writing() as connection:
            for table in (logins, links):
                connection.execute(delete(table).where(table.c.expires <= now))
            connection.execute(delete(audit).where(audit.c.at < now - AUDIT_DAYS * DAY_S))
            days = {row.org_id: row.retention_days for row in connection.execute(select(orgs))}
            for org_id, most in days.items():
                old = traces.c.created < now - most * DAY_S
                connection.execute(delete(traces).where(traces.c.org_id == org_id, old))
            old = traces.c.created < now - self._days * DAY_S
            connection.execute(delete(traces).where(traces.c.org_id.not_in(days), old))
        count = self._drop(and_(runs.c.org_id.not_in(days), runs.c.seen < now - self._days * DAY_S))
        for org_id, most in days.items():
            count += self._drop(and_(runs.c.org_id == org_id, runs.c.seen < now - most * DAY_S))
        return count

    def _drop(self, chosen: ColumnElement[bool]) -> int:
        """Delete runs in small groups, so that no writer waits long."""
        count, deleted = 0, AT_ONCE
        while deleted == AT_ONCE:
            with self._db.writing() as connection:
                deleted = _drop_some(connection, chosen)
            count += deleted
        return count


def _erase(connection: Connection, org_id: str) -> int:
    of_org = select(keys.c.key_id).where(keys.c.org_id == org_id)
    for table in (logins, links):
        connection.execute(delete(table).where(table.c.key_id.in_(of_org)))
    tables = [table for table in METADATA.sorted_tables if "org_id" in table.c]
    deleted = {
        table.name: connection.execute(delete(table).where(table.c.org_id == org_id)).rowcount for table in tables
    }
    return deleted[runs.name]


def _drop_some(connection: Connection, chosen: ColumnElement[bool]) -> int:
    query = select(runs.c.day, runs.c.org_id, runs.c.run_id).where(chosen).limit(AT_ONCE)
    found = connection.execute(query.with_for_update(skip_locked=True)).all()
    places = defaultdict[tuple[object, str], list[str]](list)
    for day, org_id, run_id in found:
        places[day, org_id].append(run_id)
    for (day, org_id), names in places.items():
        connection.execute(delete(steps).where(steps.c.day == day, steps.c.org_id == org_id, steps.c.run_id.in_(names)))
        for table in (notes, runs):
            connection.execute(delete(table).where(table.c.org_id == org_id, table.c.run_id.in_(names)))
    return len(found)
