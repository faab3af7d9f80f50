"""Stores of threads: a SQLite file, memory, or PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reasonblocks.exceptions import ConfigError
from reasonblocks.util.extras import pip_install
from reasonblocks.util.files import home, make_folder

from ..ports import Store
from ._sqlite import SqliteStore as SqliteStore

POSTGRES = ("psycopg[binary]>=3.2.1",)
"""The requirements of the extra `postgres`."""


def open_store(database: str | os.PathLike[str] | None) -> Store:
    """Return the store of a file, of a PostgreSQL URL, or in memory for None. It connects when it is used."""
    if isinstance(database, str) and database.startswith(("postgresql://", "postgres://")):
        return _in_postgres(database)
    return SqliteStore(database)


def default_file(environ: Mapping[str, str]) -> Path:
    """Return the user's own file of threads; its folder is created, for this user only, if it is missing."""
    folder = home(environ)
    if folder is None:
        raise ConfigError("database", None, "this user has no home folder; give a path, or set REASONBLOCKS_HOME")
    make_folder(folder)
    return folder / "threads.db"


def _in_postgres(url: str) -> Store:
    try:
        from ._postgres import PostgresStore
    except ImportError as error:
        raise ConfigError("database", "postgresql://...", f"needs psycopg: {pip_install(POSTGRES)}") from error
    return PostgresStore(url)
