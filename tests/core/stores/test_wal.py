"""Switching a SQLite file to its write-ahead log beside others."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Timer

import pytest

from reasonblocks.backends.sqlite_file import to_wal


def connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    db = connected(tmp_path / "a.db")
    db.execute("CREATE TABLE t (n)")
    db.close()
    return tmp_path / "a.db"


def mode(db: sqlite3.Connection) -> str:
    found: str = db.execute("PRAGMA journal_mode").fetchone()[0]
    return found


def test_it_waits_for_another_transaction(path: Path) -> None:
    other, db = connected(path), connected(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        to_wal(db, 0.05)
    timer = Timer(0.1, lambda: other.execute("COMMIT"))
    timer.start()
    to_wal(db, 60)
    timer.join()
    assert mode(db) == "wal"
    other.close()
    db.close()


def test_another_error_is_raised_at_once(tmp_path: Path) -> None:
    (tmp_path / "b.db").write_bytes(b"no database at all " * 100)
    db = connected(tmp_path / "b.db")
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        to_wal(db, 60)
    db.close()
