"""The migrations make the tables that the code expects, once, whoever calls first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from reasonblocks_server.storage import NewerDatabase, Storage
from reasonblocks_server.storage._tables import METADATA
from reasonblocks_server.values import RunFilter
from tests.server.postgres import Postgres

upgrade = command.upgrade


def test_the_migrations_make_exactly_the_tables(storage: Storage) -> None:
    with storage._db.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_new_file_has_large_pages_and_a_log(sqlite: Storage) -> None:
    with sqlite._db.reading() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_size", "journal_mode")]
    assert found == [8_192, "wal"]


def test_a_second_migration_changes_nothing(storage: Storage) -> None:
    storage.orgs.put("o", 3)
    storage.migrate()
    assert storage.orgs.get("o")["retention_days"] == 3


@pytest.fixture(params=["sqlite", "postgresql"])
def unmigrated(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/100%/new folder/server.db"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_database()


def test_processes_that_start_at_once_migrate_once(unmigrated: str) -> None:
    opened = [Storage.open(unmigrated) for _ in range(3)]
    try:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(Storage.migrate, opened))
        opened[0].check()
        with opened[0]._db.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(NewerDatabase, match="upgrade reasonblocks-server"):
            opened[1].migrate()
    finally:
        for storage in opened:
            storage.close()


@pytest.mark.parametrize("url", ["mysql://x:secret@y", "sqlite://", "sqlite:///:memory:", "", "secret"])
def test_another_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="use sqlite:///PATH") as error:
        Storage.open(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2", "postgresql+asyncpg"])
def test_postgresql_is_used_through_psycopg_3(scheme: str) -> None:
    storage = Storage.open(f"{scheme}://user@/name")
    assert storage._db.url.drivername == "postgresql+psycopg"
    storage.close()


def test_a_database_of_the_first_tables_keeps_its_rows(unmigrated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage.open(unmigrated)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(command, "upgrade", lambda config, _: upgrade(config, "0001"))
            storage.migrate()
        rows = {"org_id": "o", "run_id": "r", "day": "2026-01-01", "started": 9e9, "seen": 5.0}
        with storage._db.writing() as connection:
            connection.execute(text("INSERT INTO agents VALUES ('o', 'a', 'coding', 'r', 1.0, '{}')"))
            names = "day, org_id, run_id, started, seen, origin, agent_name, task, model, framework, project_id, mode"
            given = ":day, :org_id, :run_id, :started, :seen, 2, '', '', '', '', 'p', 'steer'"
            more = "steps, last_step, failure_step, injections, takes_notes"
            connection.execute(text(f"INSERT INTO runs ({names}, {more}) VALUES ({given}, 0, -1, -1, 0, false)"), rows)
        storage.migrate()
        assert storage.agents.read("o", "a", "coding", "") == [{}]
        assert [row.started for row in storage.runs.list("o", RunFilter(), limit=9)[0]] == [5.0]
        with storage._db.reading() as connection:
            assert connection.execute(text("SELECT client_started FROM runs")).scalar() == 9e9
    finally:
        storage.close()
