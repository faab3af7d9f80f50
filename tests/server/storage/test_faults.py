"""A database that is locked, full, damaged or gone is reported as unavailable, and used again when it is back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_server.errors import StorageUnavailable
from reasonblocks_server.storage import Storage
from reasonblocks_server.values import RunFilter
from tests.server.postgres import Postgres
from tests.server.storage.model import row_of, step

NOBODY = 65_534
READ_ONLY = "readonly|read-only|unable to open"
USES: tuple[Callable[[Storage], object], ...] = (
    lambda storage: storage.runs.ingest("o", [step("r", 1)], now=1.0),
    lambda storage: storage.runs.get("o", "r"),
    lambda storage: storage.check(),
    lambda storage: storage.keys.find("k"),
)


def path_of(storage: Storage) -> Path:
    assert storage._db.path is not None
    return Path(storage._db.path)


@pytest.fixture
def impatient(sqlite: Storage) -> Iterator[Storage]:
    """A storage that does not wait for locks."""
    opened = Storage.open(f"sqlite:///{path_of(sqlite)}", busy_s=0.01)
    try:
        yield opened
    finally:
        opened.close()


def test_a_locked_database_is_unavailable_to_writers(impatient: Storage) -> None:
    with closing(sqlite3.connect(path_of(impatient), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="locked"):
            impatient.runs.ingest("o", [step("r", 0)], now=1.0)
        assert impatient.runs.get("o", "r") is None
        other.execute("ROLLBACK")
    assert impatient.runs.ingest("o", [step("r", 0)], now=1.0).accepted == 1


def test_a_slow_writer_of_this_process_is_waited_for_as_long(impatient: Storage) -> None:
    with impatient._db.writing(), pytest.raises(StorageUnavailable, match="locked"):
        impatient.runs.ingest("o", [step("r", 0)], now=1.0)
    assert impatient.runs.ingest("o", [step("r", 0)], now=1.0).accepted == 1


def test_a_full_database_is_unavailable_and_loses_nothing(impatient: Storage) -> None:
    impatient.runs.ingest("o", [step("r", 0)], now=1.0)
    with impatient._db.reading() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=1")
    with pytest.raises(StorageUnavailable, match="full"):
        impatient.runs.ingest("o", [step("r", 1, thought="x" * 100_000)], now=1.0)
    row = row_of(impatient)
    assert row.steps == 1


@pytest.mark.parametrize("use", USES)
def test_a_deleted_database_is_unavailable(sqlite: Storage, use: Callable[[Storage], object]) -> None:
    sqlite.runs.ingest("o", [step("r", 0)], now=1.0)
    shutil.rmtree(path_of(sqlite).parent)
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            use(sqlite)
    assert not path_of(sqlite).exists()
    sqlite.migrate()
    use(sqlite)


def test_a_replaced_database_is_noticed(sqlite: Storage) -> None:
    sqlite.runs.ingest("o", [step("r", 0)], now=1.0)
    path = path_of(sqlite)
    for one in path.parent.glob("server.db*"):
        one.rename(path.parent / f"old-{one.name}")
    other = Storage.open(f"sqlite:///{path}")
    try:
        other.migrate()
    finally:
        other.close()
    with pytest.raises(StorageUnavailable, match="replaced"):
        sqlite.runs.get("o", "r")
    assert sqlite.runs.list("o", RunFilter(), limit=1) == ([], None)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_the_files_of_a_database_are_this_users_own(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        storage = Storage.open(f"sqlite:///{tmp_path}/new/server.db")
        storage.migrate()
        with storage._db.lock("upkeep"):
            modes = {path.name: path.stat().st_mode & 0o777 for path in [*tmp_path.iterdir(), *tmp_path.glob("new/*")]}
        storage.close()
    finally:
        os.umask(before)
    assert modes.pop("new") == 0o700
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize("use", USES)
def test_a_file_of_something_else_is_unavailable(tmp_path: Path, use: Callable[[Storage], object]) -> None:
    (tmp_path / "server.db").write_bytes(b"no database at all" * 500)
    storage = Storage.open(f"sqlite:///{tmp_path}/server.db")
    with pytest.raises(StorageUnavailable, match="not a database"):
        use(storage)
    with pytest.raises(StorageUnavailable, match="not a database"):
        storage.migrate()
    storage.close()


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Act as a user who can read the folder but not write to it."""
    folder.chmod(0o555)
    for path in folder.iterdir():
        path.chmod(0o444)
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(NOBODY)
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)


def test_a_read_only_folder_is_unavailable_to_writers() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rb-read-only-"))
    storage = Storage.open(f"sqlite:///{folder}/server.db", busy_s=0.01)
    try:
        storage.migrate()
        with without_rights(folder), pytest.raises(StorageUnavailable, match=READ_ONLY):
            storage.runs.ingest("o", [step("r", 0)], now=1.0)
        with without_rights(folder), pytest.raises(StorageUnavailable, match=READ_ONLY):
            storage.migrate()
        assert storage.runs.ingest("o", [step("r", 0)], now=1.0).accepted == 1
    finally:
        storage.close()
        shutil.rmtree(folder)


def test_a_stopped_postgresql_is_unavailable_until_it_is_back(postgres: Postgres) -> None:
    storage = Storage.open(postgres.new_database())
    try:
        storage.migrate()
        storage.runs.ingest("o", [step("r", 0)], now=1.0)
        postgres.stop()
        try:
            for use in USES:
                with pytest.raises(StorageUnavailable):
                    use(storage)
            with pytest.raises(StorageUnavailable), storage.lock("sweep"):
                pass
            with pytest.raises(StorageUnavailable):
                storage.migrate()
        finally:
            postgres.start()
        for use in USES:
            use(storage)
        assert [body["step_index"] for body in storage.runs.steps("o", "r")] == [0, 1]
    finally:
        storage.close()


def test_a_locked_row_of_postgresql_is_waited_for_some_time(postgres: Postgres) -> None:
    url = postgres.new_database()
    first, second = Storage.open(url), Storage.open(url, busy_s=0.2)
    try:
        first.migrate()
        first.runs.ingest("o", [step("r", 0)], now=1.0)
        with first._db.writing() as connection:
            connection.exec_driver_sql("SELECT * FROM runs FOR UPDATE")
            with pytest.raises(StorageUnavailable, match="lock timeout"):
                second.runs.ingest("o", [step("r", 1)], now=1.0)
        assert second.runs.ingest("o", [step("r", 1)], now=1.0).accepted == 1
    finally:
        first.close()
        second.close()


def test_a_silent_host_of_postgresql_is_noticed_while_it_owes_an_answer(postgres: Postgres) -> None:
    storage = Storage.open(postgres.new_database())
    with storage._db.reading() as connection:
        driver: Any = connection.connection.driver_connection
        given = driver.info.get_parameters()
    storage.close()
    assert (given["tcp_user_timeout"], given["keepalives_idle"]) == ("10000", "5")


def test_a_database_without_tables_is_unavailable(postgres: Postgres) -> None:
    storage = Storage.open(postgres.new_database())
    for use in USES:
        with pytest.raises(StorageUnavailable, match="does not exist"):
            use(storage)
    storage.close()


def write_and_stop(storage: Storage, postgres: Postgres) -> None:
    with storage._db.writing() as connection:
        connection.exec_driver_sql("INSERT INTO orgs VALUES ('o', 3)")
        postgres.stop()


def test_postgresql_that_stops_in_a_transaction_keeps_nothing_of_it(postgres: Postgres) -> None:
    storage = Storage.open(postgres.new_database())
    try:
        storage.migrate()
        try:
            with pytest.raises(StorageUnavailable):
                write_and_stop(storage, postgres)
        finally:
            postgres.start()
        assert storage.orgs.get("o")["retention_days"] == 30
    finally:
        storage.close()
