"""The tables of a file of patterns, and how a file of an older form becomes one of this form."""

from __future__ import annotations

import sqlite3

from ...exceptions import StoreError

__all__ = ["prepared"]

APPLICATION = 0x52425053
"""Says of a SQLite file that it is ours: "RBPS"."""
MIGRATIONS = (
    """
    CREATE TABLE meta (store TEXT NOT NULL, change INTEGER NOT NULL);
    CREATE TABLE patterns (
      id TEXT PRIMARY KEY, tier TEXT NOT NULL, org_id TEXT, failure_type TEXT, gate REAL, signal INTEGER NOT NULL,
      off INTEGER NOT NULL, body TEXT NOT NULL, changed INTEGER NOT NULL
    );
    CREATE INDEX patterns_changed ON patterns (changed);
    CREATE TABLE vectors (
      id TEXT NOT NULL, embedder TEXT NOT NULL, dim INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (id, embedder)
    );
    CREATE TABLE counts (
      id TEXT PRIMARY KEY, retrieved INTEGER NOT NULL DEFAULT 0, injected INTEGER NOT NULL DEFAULT 0,
      recovered INTEGER NOT NULL DEFAULT 0, not_recovered INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL
    );
    CREATE INDEX counts_changed ON counts (changed);
    CREATE TABLE gone (id TEXT PRIMARY KEY, changed INTEGER NOT NULL);
    CREATE INDEX gone_changed ON gone (changed);
    INSERT INTO meta VALUES (lower(hex(randomblob(16))), 0);
    """,
)
"""What makes a file of form n one of form n + 1; `PRAGMA user_version` is the file's."""


def prepared(db: sqlite3.Connection, path: str, *, write: bool) -> int:
    """The file's form, once it was checked and, to write, brought up to date. 0: nothing is in it yet."""
    found = _form(db, path)
    if not write or found == len(MIGRATIONS):
        return found
    if found == 0:
        db.execute("PRAGMA journal_mode=WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_form(db, path), len(MIGRATIONS)):
            for statement in MIGRATIONS[number].split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA application_id={APPLICATION}")
        db.execute(f"PRAGMA user_version={len(MIGRATIONS)}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    return len(MIGRATIONS)


def _form(db: sqlite3.Connection, path: str) -> int:
    form: int = db.execute("PRAGMA user_version").fetchone()[0]
    application = db.execute("PRAGMA application_id").fetchone()[0]
    empty = form == 0 and application == 0 and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not empty and application != APPLICATION:
        raise StoreError(path, "this SQLite file belongs to another program: give the path of another file")
    if form > len(MIGRATIONS):
        rule = f"its form {form} is newer than this library's {len(MIGRATIONS)}: upgrade reasonblocks-core"
        raise StoreError(path, rule)
    return form
