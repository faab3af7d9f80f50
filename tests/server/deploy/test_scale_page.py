"""The statements of docs/scale.md partition the table `steps`, and the server can use it before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from reasonblocks_server.storage import Storage
from tests.server.postgres import Postgres, why_not
from tests.server.workers.clients import step_event
from tests.whole import in_whole

ROOT = Path(__file__).parents[3]
pytestmark = [in_whole, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


@pytest.fixture
def url() -> Iterator[str]:
    with Postgres() as server:
        yield server.new_database()


def store(url: str, run_id: str, now: float) -> list[int]:
    """Store two steps of a run that begins at that time, one of them twice, and return the stored indices."""
    storage = Storage.open(url)
    try:
        storage.migrate()
        events = [{**step_event(run_id, index), "timestamp": now} for index in (0, 1, 1)]
        found = storage.runs.ingest("default", events, now=now)
        assert (found.accepted, found.repeated) == (2, 1)
        return [step["step_index"] for step in storage.runs.steps("default", run_id)]
    finally:
        storage.close()


def test_the_table_of_steps_can_be_partitioned(url: str) -> None:
    (statements,) = re.findall(r"^```sql\n(.*?)^```$", (ROOT / "docs/scale.md").read_text("utf-8"), re.M | re.S)
    november = 1_794_000_000.0
    assert store(url, "before", november) == [0, 1]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements)
    assert store(url, "after", november) == [0, 1]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM steps_2026_11").fetchone() == (4,)
