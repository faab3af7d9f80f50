"""A batch does not read a long run again: its summary is made afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from reasonblocks_server.storage import Storage, _ingest
from reasonblocks_server.summary import summary_of
from tests.server.storage.model import finish, row_of, start, step


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ingest, "SUMMARISED_AT_ONCE", 5)


def read_by(storage: Storage, events: list[dict[str, Any]]) -> list[str]:
    """Store a batch, and return the queries of whole steps that it makes."""
    found: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SELECT") and "steps.scores" in statement:
            found.append(statement)

    event.listen(storage._db.engine, "before_cursor_execute", note)
    storage.runs.ingest("o", events, now=2.0)
    event.remove(storage._db.engine, "before_cursor_execute", note)
    return found


def summary(storage: Storage) -> Any:
    row = row_of(storage)
    return row.summary


def test_a_late_batch_of_a_long_run_reads_none_of_its_steps(storage: Storage) -> None:
    storage.runs.ingest("o", [start("r", 1.0), *[step("r", index) for index in range(6)], finish("r")], now=1.0)
    storage.runs.summarise("o", "r")
    assert summary(storage)["calls"] == 6
    assert read_by(storage, [step("r", 6, state="SLOW", monitors_fired=["m"])]) == []
    assert summary(storage) is None


def test_a_late_batch_of_a_short_run_changes_its_summary_at_once(storage: Storage) -> None:
    storage.runs.ingest("o", [start("r", 1.0), step("r", 0), finish("r")], now=1.0)
    assert len(read_by(storage, [step("r", 1)])) == 1
    assert summary(storage)["calls"] == 2


def test_a_long_run_is_summarised_afterwards(storage: Storage) -> None:
    events = [start("r", 1.0), *[step("r", index, state="SLOW") for index in range(6)]]
    assert storage.runs.ingest("o", events, now=1.0).unsummarised == ()
    assert storage.runs.ingest("o", [finish("r")], now=1.0).unsummarised == ("r",)
    assert storage.runs.unsummarised(since=1.0, limit=9) == [("o", "r")]
    assert storage.runs.unsummarised(since=2.0, limit=9) == []
    storage.runs.summarise("o", "r")
    assert summary(storage) == summary_of(storage.runs.narrow("o", ["r"])["r"], "success")
    assert storage.runs.unsummarised(since=1.0, limit=9) == []


def test_a_run_without_an_end_is_not_summarised(storage: Storage) -> None:
    storage.runs.ingest("o", [start("r", 1.0), *[step("r", index) for index in range(6)]], now=1.0)
    storage.runs.summarise("o", "r")
    storage.runs.summarise("o", "unknown")
    assert summary(storage) is None
