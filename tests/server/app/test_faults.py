"""Evaluations continue after a restart, after a killed worker and without the database."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from reasonblocks_server.errors import StorageUnavailable
from reasonblocks_server.server import Migrating
from reasonblocks_server.storage import NewerDatabase, Storage
from tests.server.app.asking import LOOP, evaluated, stepped
from tests.server.running import Running, running
from tests.server.serving import served
from tests.whole import in_whole


def test_after_a_restart_the_next_evaluation_is_exact(server: Running, client: httpx.Client, tmp_path: Path) -> None:
    whole = stepped(client, 6)
    with running(tmp_path) as first, first.client() as before:
        key, begun = first.key, stepped(before, 3)
    with running(tmp_path) as second, second.client(key) as after:
        assert [*begun, *stepped(after, 6, start=3)] == whole


def test_known_keys_can_evaluate_without_the_database(tmp_path: Path) -> None:
    event = {"event": "run_finish", "run_id": "r", "outcome": "success", "timestamp": time.time()}
    file = tmp_path / "server.db"
    with running(tmp_path, static_keys=("static-key-of-tests@acme",)) as server, server.client() as client:
        unknown = server.make_key()
        stepped(client, 3)
        gone = file.rename(file.with_suffix(".gone"))
        found = [
            client.get("/ready"),
            client.post("/v1/monitor/events", json={"events": [event]}),
            client.get("/v1/monitor/runs", headers={"Authorization": f"Bearer {unknown}"}),
        ]
        assert [answer.status_code for answer in found] == [503, 503, 503]
        assert [answer.headers["Retry-After"] for answer in found] == ["1"] * 3
        assert client.get("/health").status_code == 200
        assert not stepped(client, 5, start=3, notes=True)[-1]["partial"]
        assert client.post("/v1/traces/retrieve", json={"context": "", "tier": "e3"}).status_code == 200
        with server.client("static-key-of-tests") as static:
            assert evaluated(static)["scores"]
        gone.rename(file)
        assert client.get("/ready").status_code == 200
        assert client.post("/v1/monitor/events", json={"events": [event]}).json()["accepted"] == 1


def test_an_answer_does_not_say_where_the_database_is(
    server: Running, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check() -> None:
        raise StorageUnavailable('connection failed: connection to server at "10.0.0.5" failed: FATAL: user "me"')

    monkeypatch.setattr(server.server.storage, "check", check)
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.json() == {"detail": "the database is not available: connection failed"}


def test_a_server_starts_without_its_database_and_migrates_it_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = tmp_path / "server.db"
    damaged.write_text("This is no database.")
    with (
        running(tmp_path, make_key=False, static_keys=("static-key-of-tests",)) as server,
        server.client("static-key-of-tests") as client,
    ):
        assert client.get("/ready").status_code == 503
        assert evaluated(client)["scores"]
        damaged.unlink()
        assert server.server.migrating.done.wait(20)
        assert client.get("/ready").status_code == 200
    assert "the database does not answer" in caplog.text


def test_a_database_that_turns_out_to_be_newer_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([StorageUnavailable("down"), NewerDatabase("r9999")])

    class Newer(Storage):
        def migrate(self) -> None:
            raise next(answers)

    migrating = Migrating(Newer.open("sqlite:///never-opened.db"))
    assert migrating._thread is not None
    migrating._thread.join(20)
    migrating.end()
    assert not migrating.done.is_set()
    assert "'r9999', which a newer version wrote" in caplog.text


def test_commits_of_sqlite_can_be_synchronous(tmp_path: Path) -> None:
    with running(tmp_path, sqlite_synchronous="FULL") as server, server.server.storage._db.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2


@in_whole
def test_a_killed_worker_is_replaced_and_loses_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "home", "--data", str(tmp_path / "data")) as server:
        start = {"event": "run_start", "run_id": "r", "agent_name": "a", "task": "t", "timestamp": time.time()}
        assert server.ask("/v1/monitor/events", {"events": [start]})[1]["accepted"] == 1
        body = {"steps": [LOOP], "from_step": 3, "account": {"steps": 4, "letters": ".AAA"}, "run_id": "r"}
        before = server.ask("/v1/monitors/evaluate", body)[1]
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        assert server.ask("/v1/monitors/evaluate", body)[1] == before
        assert server.ask("/v1/monitor/events", {"events": [start]})[1] == {"accepted": 0, "repeated": 1, "refused": []}
