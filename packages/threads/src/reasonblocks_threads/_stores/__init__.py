"""Stores of threads: a SQLite file, memory, or PostgreSQL."""

from __future__ import annotations

import os

from .._ports import Store
from ._sqlite import SqliteStore


def open_store(database: str | os.PathLike[str] | None) -> Store:
    """Return the store of a file, of a PostgreSQL URL, or in memory for None. It connects when it is used."""
    if isinstance(database, str) and database.startswith(("postgresql://", "postgres://")):
        raise NotImplementedError
    return SqliteStore(database)
