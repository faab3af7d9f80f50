"""The same tests in memory, in a file and in PostgreSQL: `store` is a new, empty one in each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import SqliteStore, open_store
from tests.server.postgres import Postgres, why_not
from tests.whole import in_whole

EMPTY = """
SET session_replication_role = replica;
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'reasonblocks_threads' AND tablename <> 'form' LOOP
    EXECUTE format('DELETE FROM reasonblocks_threads.%I', name);
  END LOOP;
END $$
"""


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def url(postgres: Postgres) -> str:
    """A database of PostgreSQL with empty tables."""
    found = postgres.new_database()
    store = open_store(found)
    with store.read():
        pass
    store.close()
    return found


@pytest.fixture
def empty_url(url: str) -> Iterator[str]:
    yield url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(EMPTY)


@pytest.fixture(params=["file", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The databases that several stores and processes can open."""
    if request.param == "file":
        return str(tmp_path / "threads.db")
    url: str = request.getfixturevalue("empty_url")
    return url


@pytest.fixture
def on_disk(database: str) -> Iterator[Store]:
    found = open_store(database)
    yield found
    found.close()


@pytest.fixture(params=["file", pytest.param("postgresql", marks=in_whole)])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database for tests that start processes; for PostgreSQL a thread is as far away."""
    if request.param == "file":
        return str(tmp_path / "threads.db")
    url: str = request.getfixturevalue("empty_url")
    return url


@pytest.fixture(params=["memory", "file", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgresql":
        found = open_store(request.getfixturevalue("empty_url"))
    else:
        found = open_store(None if request.param == "memory" else tmp_path / "threads.db")
    yield found
    found.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def file(path: Path) -> Iterator[SqliteStore]:
    """A store in a file, for tests that damage it."""
    found = SqliteStore(path)
    yield found
    found.close()
