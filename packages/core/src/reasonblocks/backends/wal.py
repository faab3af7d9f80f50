"""Switches a SQLite file to its write-ahead log, while other processes may do the same."""

from __future__ import annotations

import sqlite3
import time

__all__ = ["to_wal"]

PAUSE_S = 0.01
"""Seconds between two attempts."""


def to_wal(db: sqlite3.Connection, seconds: float) -> None:
    """Switch the file to its write-ahead log. Raises `sqlite3.OperationalError` if it stays locked for so long.

    SQLite itself does not wait here: it fails at once if two connections switch the same file.
    """
    ends = time.monotonic() + seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > ends:
                raise
            time.sleep(PAUSE_S)
        else:
            return
