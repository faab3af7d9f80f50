"""The same tests on SQLite and on PostgreSQL: `storage` is a new, empty one on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonblocks_server.storage import Storage
from reasonblocks_server.storage._tables import METADATA
from tests.server.postgres import Postgres, why_not


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('storage')}/server.db"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_database()


@pytest.fixture(scope="session")
def opened(url: str) -> Iterator[Storage]:
    found = Storage.open(url)
    try:
        found.migrate()
        yield found
    finally:
        found.close()


@pytest.fixture
def storage(opened: Storage) -> Iterator[Storage]:
    yield opened
    empty(opened)


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
