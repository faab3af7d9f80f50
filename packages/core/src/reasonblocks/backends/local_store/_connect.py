"""How a file is opened: to write where that is possible, else to read what is there."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ..._toml import regular

__all__ = ["BUSY_S", "connect"]

BUSY_S = 5.0
"""How long one process waits for the transaction of another: an import of 10,000 patterns takes a tenth of that."""


def connect(path: str, *, make: bool) -> sqlite3.Connection:
    """Return a connection in autocommit mode. With `make`, create a missing file and its folder.

    Raises `OSError` if the file, or one of SQLite's files beside it, is not a regular file: a pipe would block.
    """
    for one in (path, f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        if os.path.exists(one):
            regular(one)
    if make:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        return _opened(path, "mode=rwc")
    try:
        return _opened(path, "mode=rw")
    except sqlite3.OperationalError:
        if make:
            raise
    log = f"{path}-wal"  # without one nothing is newer than the file; SQLite itself needs to write to see that
    unchanged = not os.path.exists(log) or not os.path.getsize(log)
    return _opened(path, "mode=ro&immutable=1" if unchanged else "mode=ro")


def _opened(path: str, mode: str) -> sqlite3.Connection:
    uri = f"{Path(os.path.abspath(path)).as_uri()}?{mode}"
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA user_version").fetchone()
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db
