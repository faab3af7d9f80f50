"""One worker at a time deletes old runs, and a missing database does not end this."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_server.server import Sweeping
from reasonblocks_server.storage import Storage
from tests.server.routes.world import finish, step, until

DAY_S = 86_400


def test_runs_older_than_the_retention_are_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = Storage.open(f"sqlite:///{tmp_path / 'server.db'}", retention_days=10)
    storage.migrate()
    for name, days in (("old", 11), ("new", 9)):
        event = {"event": "run_finish", "run_id": name, "outcome": "success", "timestamp": 1.0}
        storage.runs.ingest("acme", [event], now=time.time() - days * DAY_S)
    done = Said("deleted 1 old runs")
    logger = logging.getLogger("reasonblocks.server")
    logger.addHandler(done)
    with caplog.at_level(logging.INFO, logger.name):
        sweeping = Sweeping(storage, first_s=0)
        assert done.event.wait(20)
        sweeping.end()
    logger.removeHandler(done)
    assert storage.runs.get("acme", "old") is None
    assert storage.runs.get("acme", "new") is not None
    assert storage.orgs.get("acme")["retention_days"] == 10
    storage.close()


def test_a_sweep_summarises_the_long_runs_that_an_ended_worker_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonblocks_server.storage._ingest.SUMMARISED_AT_ONCE", 0)
    storage = Storage.open(f"sqlite:///{tmp_path / 'server.db'}")
    storage.migrate()
    events = [step("r", 0), step("r", 1), finish("r")]
    assert storage.runs.ingest("acme", events, now=time.time()).unsummarised == ("r",)
    sweeping = Sweeping(storage, first_s=0)
    until(lambda: not storage.runs.unsummarised(since=0.0, limit=1))
    sweeping.end()
    row = storage.runs.get("acme", "r")
    assert row is not None
    assert row.summary is not None
    assert row.summary["calls"] == 2
    storage.close()


def test_a_missing_database_is_a_line_in_the_log(tmp_path: Path) -> None:
    storage = Storage.open(f"sqlite:///{tmp_path / 'nothing' / 'server.db'}")
    (tmp_path / "nothing").mkdir()
    done = Said("cannot delete old runs now: ")
    logger = logging.getLogger("reasonblocks.server")
    logger.addHandler(done)
    sweeping = Sweeping(storage, first_s=0)
    assert done.event.wait(20)
    sweeping.end()
    logger.removeHandler(done)
    storage.close()


def test_a_fault_does_not_end_the_sweeps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = Storage.open(f"sqlite:///{tmp_path / 'server.db'}")
    storage.migrate()
    days: Any = "no number"
    storage.orgs.put("acme", days)
    failed, done = Said("cannot delete old runs now"), Said("deleted 0 old runs")
    logger = logging.getLogger("reasonblocks.server")
    logger.addHandler(failed)
    logger.addHandler(done)
    with caplog.at_level(logging.INFO, logger.name):
        sweeping = Sweeping(storage, first_s=0, every_s=0.01)
        assert failed.event.wait(20)
        storage.orgs.put("acme", 10)
        assert done.event.wait(20)
        sweeping.end()
    logger.removeHandler(failed)
    logger.removeHandler(done)
    storage.close()


class Said(logging.Handler):
    """Sets an event when a line begins with a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text, self.event = text, threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(self._text):
            self.event.set()
