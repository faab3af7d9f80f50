"""Keeps the server's data in SQLite or PostgreSQL.

Every method is one transaction, may be called from any thread, and raises `StorageUnavailable` if the database is
locked, full or unreachable. A method without an `org_id` says so: it is for the server's own work.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from sqlalchemy import select

from ._database import BUSY_S, Database, NewerDatabase, Synchronous
from ._keys import Keys
from ._notes import Notes
from ._orgs import RETENTION_DAYS, Orgs
from ._runs import Runs
from ._tables import orgs
from ._team import Agents, Audit, Profiles, Traces

__all__ = ["Agents", "Audit", "Keys", "NewerDatabase", "Notes", "Orgs", "Profiles", "Runs", "Storage", "Traces"]


class Storage:
    """All tables of one database. Create it with `Storage.open`, and call `migrate` once before the first use."""

    def __init__(self, database: Database, retention_days: int) -> None:
        self._db = database
        self.runs = Runs(database)
        self.notes = Notes(database)
        self.keys = Keys(database)
        self.orgs = Orgs(database, retention_days)
        self.profiles = Profiles(database)
        self.agents = Agents(database)
        self.audit = Audit(database)
        self.traces = Traces(database)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        synchronous: Synchronous = "NORMAL",
        busy_s: float = BUSY_S,
        retention_days: int = RETENTION_DAYS,
    ) -> Storage:
        """Return the storage of `sqlite:///PATH` or `postgresql://...`, without connecting yet.

        `synchronous` is SQLite's: with "FULL" a power cut loses no commit. `busy_s` is the time to wait for another
        transaction. `retention_days` are those of an org that has set none. Raises `ValueError` for another database.
        """
        return cls(Database(url, synchronous, busy_s), retention_days)

    def migrate(self) -> None:
        """Create the tables, or migrate them to this version. Raises `NewerDatabase`, `StorageUnavailable`."""
        from ._migrate import migrate  # Alembic: a worker does without it

        migrate(self._db)

    def check(self) -> None:
        """Raise `StorageUnavailable` if the database cannot be read."""
        with self._db.reading() as connection:
            connection.execute(select(orgs.c.org_id).limit(1))

    def lock(self, name: str) -> AbstractContextManager[bool]:
        """Hold a lock over all processes of this database. Yields False if another process holds it."""
        return self._db.lock(name)

    def close(self) -> None:
        self._db.close()
