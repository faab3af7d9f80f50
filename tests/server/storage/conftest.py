"""The same tests on SQLite and on PostgreSQL: `storage` is a new, empty one on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonblocks_server._storage import Storage
from reasonblocks_server._storage._tables import METADATA
from tests.server.postgres import Postgres, why_not


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a database that has all tables."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path_factory.mktemp('storage')}/server.db"
    else:
        address = request.getfixturevalue("postgres").new_database()
    opened = Storage.open(address)
    try:
        opened.migrate()
    finally:
        opened.close()
    return address


@pytest.fixture
def storage(url: str) -> Iterator[Storage]:
    opened = Storage.open(url)
    try:
        yield opened
    finally:
        empty(opened)
        opened.close()


def empty(storage: Storage) -> None:
    """Delete all rows."""
    with storage._db.writing() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(table.delete())


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Storage]:
    """A storage in a file of its own, for tests that damage it."""
    opened = Storage.open(f"sqlite:///{tmp_path}/data/server.db")
    try:
        opened.migrate()
        yield opened
    finally:
        opened.close()
