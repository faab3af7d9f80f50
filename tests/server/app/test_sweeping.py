"""One worker at a time deletes old runs, and a missing database does not end this."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_server.server import Sweeping
from reasonblocks_server.storage import Storage
from tests.server.routes.world import finish, step, until
from tests.server.running import stored

DAY_S = 86_400


class Said(logging.Handler):
    """Sets an event when a line begins with a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text, self.event = text, threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(self._text):
            self.event.set()


@contextmanager
def hearing(*texts: str) -> Iterator[Sequence[threading.Event]]:
    """Yield an event for each text, which is set by the first line that begins with it."""
    logger, handlers = logging.getLogger("reasonblocks.server"), [Said(text) for text in texts]
    for handler in handlers:
        logger.addHandler(handler)
    yield [handler.event for handler in handlers]
    for handler in handlers:
        logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def _all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "reasonblocks.server")


def test_runs_older_than_the_retention_are_deleted(tmp_path: Path) -> None:
    with stored(tmp_path, retention_days=10) as storage, hearing("deleted 1 old runs") as (done,):
        for name, days in (("old", 11), ("new", 9)):
            storage.runs.ingest("acme", [finish(name)], now=time.time() - days * DAY_S)
        sweeping = Sweeping(storage, first_s=0)
        assert done.wait(20)
        sweeping.end()
        assert storage.runs.get("acme", "old") is None
        assert storage.runs.get("acme", "new") is not None
        assert storage.orgs.get("acme")["retention_days"] == 10


def test_a_sweep_summarises_the_long_runs_that_an_ended_worker_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonblocks_server.storage._ingest.SUMMARISED_AT_ONCE", 0)
    with stored(tmp_path) as storage:
        events = [step("r", 0), step("r", 1), finish("r")]
        assert storage.runs.ingest("acme", events, now=time.time()).unsummarised == ("r",)
        sweeping = Sweeping(storage, first_s=0)
        until(lambda: not storage.runs.unsummarised(since=0.0, limit=1))
        sweeping.end()
        row = storage.runs.get("acme", "r")
        assert row is not None
        assert row.summary is not None
        assert row.summary["calls"] == 2


def test_a_missing_database_is_a_line_in_the_log(tmp_path: Path) -> None:
    storage = Storage.open(f"sqlite:///{tmp_path / 'server.db'}")
    with hearing("cannot delete old runs now: ") as (done,):
        sweeping = Sweeping(storage, first_s=0)
        assert done.wait(20)
        sweeping.end()
    storage.close()


def test_a_fault_does_not_end_the_sweeps(tmp_path: Path) -> None:
    with stored(tmp_path) as storage, hearing("cannot delete old runs now", "deleted 0 old runs") as (failed, done):
        days: Any = "no number"
        storage.orgs.put("acme", days)
        sweeping = Sweeping(storage, first_s=0, every_s=0.01)
        assert failed.wait(20)
        storage.orgs.put("acme", 10)
        assert done.wait(20)
        sweeping.end()
