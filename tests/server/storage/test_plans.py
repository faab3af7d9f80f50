"""The queries of lists, pages and polls read indexed rows, not all runs of an org."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import event

from reasonblocks_server.storage import Storage
from reasonblocks_server.values import RunFilter
from tests.server.running import stored

PLANS: dict[str, tuple[Callable[[Storage], Any], str]] = {
    "list": (lambda s: s.runs.list("o", RunFilter(), limit=50), "runs_started"),
    "list of an agent": (lambda s: s.runs.list("o", RunFilter(agent="a"), limit=50), "runs_agent"),
    "list of an experiment": (lambda s: s.runs.list("o", RunFilter(experiment_id="e"), limit=50), "runs_experiment"),
    "list of a project": (lambda s: s.runs.list("o", RunFilter(project_id="p"), limit=50), "runs_project"),
    "choices of a project": (lambda s: s.runs.choices("o", "p"), "runs_project"),
    "choices": (lambda s: s.runs.choices("o"), "runs_started"),
    "health": (lambda s: s.runs.health("o", since=1.0), "runs_started"),
    "children": (lambda s: s.runs.children("o", "p"), "runs_parent"),
    "units": (lambda s: s.runs.units("o", "e"), "runs_experiment"),
    "experiments": (lambda s: s.runs.experiments("o"), "runs_experiment"),
    "unsummarised": (lambda s: s.runs.unsummarised(since=1.0, limit=9), "runs_changed"),
    "changed": (lambda s: s.runs.changed(1.0, 9), "runs_changed"),
    "waiting": (lambda s: s.notes.waiting(1.0), "notes_state"),
}


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """A SQLite database: PostgreSQL plans by the number of rows, of which a test has few."""
    with stored(tmp_path_factory.mktemp("plans")) as found:
        yield found


@pytest.mark.parametrize("name", PLANS)
def test_a_query_uses_its_index(storage: Storage, name: str) -> None:
    call, index = PLANS[name]
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        plans.extend(row[3] for row in cursor.fetchall())

    event.listen(storage._db.engine, "before_cursor_execute", explain)
    call(storage)
    event.remove(storage._db.engine, "before_cursor_execute", explain)
    searched = [plan for plan in plans if plan.startswith(("SEARCH runs", "SCAN runs", "SEARCH notes", "SCAN notes"))]
    assert searched
    assert all(plan.startswith("SEARCH") for plan in searched), plans
    assert any(f"INDEX {index} " in plan for plan in searched), plans
    assert not any("TEMP B-TREE FOR ORDER BY" in plan for plan in plans if name.startswith("list")), plans
