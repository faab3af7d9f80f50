"""PostgreSQL: a server that stops, connections that are lost, locks that last, tables of a newer form."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import psycopg
import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_threads.errors import StoreUnavailable
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.stores._postgres import CONNECTIONS, PostgresStore
from reasonblocks_threads.values import Letter
from tests.server.postgres import Postgres
from tests.threads.stores.lines import claimed, head, noting, opened


@pytest.fixture
def remote(empty_url: str) -> Iterator[PostgresStore]:
    found = PostgresStore(empty_url, busy_s=0.2, poll_s=0.0)
    yield found
    found.close()


@pytest.fixture
def other(empty_url: str) -> Iterator[psycopg.Connection]:
    """Another program's connection."""
    with psycopg.connect(empty_url, autocommit=True) as connection:
        yield connection


def letter(id: str) -> Letter:
    return Letter(id=id, thread_id="t", run_id="r", text="x", at=1.0)


def test_a_stopped_server_is_unavailable_until_it_is_back(remote: PostgresStore, postgres: Postgres) -> None:
    thread = opened(remote)
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="does not answer"):
                noting(thread).put(remote)
            with pytest.raises(StoreUnavailable, match="does not answer"):
                head(remote, thread.id)
            with pytest.raises(StoreUnavailable, match="does not answer"):
                remote.waiting("r")
    finally:
        postgres.start()
    assert noting(thread).put(remote) == head(remote, thread.id)


def test_a_connection_that_was_lost_while_idle_is_replaced(remote: PostgresStore, other: psycopg.Connection) -> None:
    thread = opened(remote)
    for _ in range(2):
        end_others(other)
        thread = noting(thread).put(remote)
    end_others(other)
    assert head(remote, thread.id) == thread


def test_a_connection_that_is_lost_in_a_transaction_undoes_it(remote: PostgresStore, other: psycopg.Connection) -> None:
    thread = opened(remote)

    def write() -> None:
        with remote.write([thread.id]) as writing:
            writing.set_meta({"a": "1"})
            end_others(other)
            writing.set_meta({"b": "2"})

    with pytest.raises(StoreUnavailable):
        write()
    with remote.read() as reading:
        assert dict(reading.meta()) == {}


def end_others(connection: psycopg.Connection) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_row_that_another_locks_is_waited_for_some_time(remote: PostgresStore, other: psycopg.Connection) -> None:
    thread = opened(remote)
    with other.transaction():
        other.execute("SELECT * FROM reasonblocks_threads.thread FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="held a lock for too long"):
            noting(thread).put(remote)
        assert head(remote, thread.id) == thread
    noting(thread).put(remote)


def test_two_transactions_that_wait_for_each_other_do_not_last(remote: PostgresStore, empty_url: str) -> None:
    threads = sorted(opened(remote, key).id for key in ("k1", "k2"))
    with remote.write(threads[:1]), pytest.raises(StoreUnavailable), remote.write(threads):
        pass
    assert claimed(remote, 1.0) is None


def test_a_newer_form_is_refused(remote: PostgresStore, other: psycopg.Connection) -> None:
    opened(remote)
    remote.close()
    other.execute("UPDATE reasonblocks_threads.form SET number = 99")
    try:
        with pytest.raises(StoreUnavailable, match="form 99 of its tables is newer than this library's 2; upgrade"):
            opened(remote, "k2")
    finally:
        other.execute("UPDATE reasonblocks_threads.form SET number = 2")
    opened(remote, "k2")


def test_an_older_form_is_changed_and_keeps_its_threads(remote: PostgresStore, other: psycopg.Connection) -> None:
    thread = opened(remote)
    remote.close()
    other.execute("CREATE TABLE reasonblocks_threads.call (id TEXT PRIMARY KEY)")
    other.execute("UPDATE reasonblocks_threads.form SET number = 1")
    assert head(remote, thread.id) == thread
    assert other.execute("SELECT number FROM reasonblocks_threads.form").fetchall() == [(2,)]
    assert other.execute("SELECT to_regclass('reasonblocks_threads.call')").fetchone() == (None,)


def test_the_log_cannot_be_emptied(remote: PostgresStore, other: psycopg.Connection) -> None:
    thread = opened(remote)
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        other.execute("TRUNCATE reasonblocks_threads.event")
    assert head(remote, thread.id) == thread


def test_all_connections_in_use_are_waited_for_some_time(remote: PostgresStore) -> None:
    def use(depth: int) -> None:
        with remote.read():
            if depth:
                use(depth - 1)

    use(CONNECTIONS - 1)
    with pytest.raises(StoreUnavailable, match="all 16 connections are in use"):
        use(CONNECTIONS)
    use(CONNECTIONS - 1)


def test_a_letter_of_another_process_is_seen_at_the_next_poll(remote: PostgresStore, empty_url: str) -> None:
    patient = PostgresStore(empty_url, poll_s=3600.0)
    try:
        assert list(patient.waiting("r")) == list(remote.waiting("r")) == []
        with remote.write() as writing:
            writing.add_letter(letter("l1"))
        assert [each.id for each in remote.waiting("r")] == ["l1"]
        assert list(patient.waiting("r")) == []
        with patient.write() as writing:
            writing.add_letter(letter("l2"))
        assert [each.id for each in patient.waiting("r")] == ["l1", "l2"]
        assert [each.id for each in remote.waiting("r")] == ["l1", "l2"]
    finally:
        patient.close()


def test_a_transaction_that_is_not_durable_is_there_all_the_same(remote: PostgresStore) -> None:
    with remote.write(durable=False) as writing:
        writing.set_meta({"a": "1"})
    with remote.read() as reading:
        assert dict(reading.meta()) == {"a": "1"}


@pytest.mark.parametrize("url", ["postgresql://u:secret@h/d?nonsense=1", "postgresql://u:secret@h/d%zz"])
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="no valid PostgreSQL URL") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_user_without_rights_is_told_which(postgres: Postgres) -> None:
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS visitor")
        connection.execute("CREATE ROLE visitor LOGIN")
    store = PostgresStore(url.replace("postgres@", "visitor@"))
    with pytest.raises(StoreUnavailable, match="allowed to create a schema"):
        opened(store)
    store.close()


def test_without_psycopg_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "reasonblocks_threads.stores._postgres")
    with pytest.raises(ConfigError, match="pip install 'psycopg"):
        open_store("postgresql://u@h/d")
