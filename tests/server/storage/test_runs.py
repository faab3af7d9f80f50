"""Lists, choices, counts and deletion of runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks_server.storage import Storage, _health
from reasonblocks_server.values import RunFilter
from tests.server.storage.model import finish, start, step
from tests.whole import QUICK_EXAMPLES


def listed(storage: Storage, chosen: RunFilter, *, limit: int = 2, org: str = "o") -> list[str]:
    """Return the ids of all pages."""
    found, cursor = list[str](), None
    while True:
        rows, cursor = storage.runs.list(org, chosen, limit=limit, cursor=cursor)
        found += [row.run_id for row in rows]
        if cursor is None:
            return found
        assert len(rows) == limit


@settings(max_examples=QUICK_EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(starts=st.lists(st.sampled_from([1.0, 2.0, 0.1 + 0.2, -1e300]), max_size=9), limit=st.integers(1, 4))
def test_pages_have_every_run_once_the_newest_first(storage: Storage, starts: list[float], limit: int) -> None:
    storage.orgs.erase("o")
    ids = {f"{chr(64 + number)}é{number}": at for number, at in enumerate(starts)}
    storage.runs.ingest("o", [start(name, at) for name, at in ids.items()], now=1.0)
    found = listed(storage, RunFilter(), limit=limit)
    assert sorted(found) == sorted(ids)
    assert [ids[name] for name in found] == sorted(starts, reverse=True)


@pytest.mark.parametrize("cursor", ["", "x", "é", "W10", "WzEsMV0", "eyJhIjogMX0", "bnVsbA", "A" * 9_999])
def test_a_foreign_cursor_is_an_error(storage: Storage, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        storage.runs.list("o", RunFilter(), limit=1, cursor=cursor)


def test_a_list_chooses_by_every_field(storage: Storage) -> None:
    arm = {"experiment_id": "e", "arm": "on", "on_fraction": 0.5}
    storage.runs.ingest("o", [start("one", 10.0, agent_name="Ärger", task="Fix 100%", metadata=arm)], now=1.0)
    storage.runs.ingest("o", [step("one", 0, state="SLOW", failure_type="loop"), finish("one", "failure: X")], now=1.0)
    storage.runs.ingest("o", [start("two", 20.0), finish("two")], now=1.0, project_id="p")
    storage.runs.ingest("o", [start("three", 30.0), finish("three", "gave up")], now=1.0)
    storage.runs.ingest("o", [start("four", 40.0)], now=1.0)
    fields: tuple[dict[str, Any], ...] = (
        {"agent": "Ärger"}, {"state": "SLOW"}, {"outcome": "failure"}, {"failure_type": "loop"}, {"experiment_id": "e"},
        {"arm": "on"}, {"q": "100%"}, {"q": "fix"}, {"q": "ärg"}, {"q": "ONE"},
    )  # fmt: skip
    for chosen in fields:
        assert listed(storage, RunFilter(**chosen)) == ["one"], chosen
    assert listed(storage, RunFilter(outcome="success")) == ["two"] == listed(storage, RunFilter(project_id="p"))
    assert listed(storage, RunFilter(outcome="unknown")) == ["three"]
    assert listed(storage, RunFilter(outcome="live")) == ["four"]
    assert listed(storage, RunFilter(since=20.0)) == ["four", "three", "two"]
    assert listed(storage, RunFilter(q="_")) == listed(storage, RunFilter(outcome="x")) == []
    assert storage.runs.choices("o") == {
        "agents": ["Ärger"], "failure_types": ["loop"], "states": ["SLOW"], "experiments": ["e"],
    }  # fmt: skip
    assert storage.runs.experiments("o") == [("e", 1, 10.0)]
    assert [(row.run_id, row.body["metadata"]) for row in storage.runs.units("o", "e")[0]] == [
        ("one", {"on_fraction": 0.5})
    ]


def test_the_newest_runs_of_an_experiment_are_compared(storage: Storage) -> None:
    for number in range(3):
        begun = start(f"r{number}", float(number), metadata={"experiment_id": "e", "arm": "on"})
        storage.runs.ingest("o", [begun], now=1.0, project_id=f"p{number}")
    names = [([row.run_id for row in rows], more) for rows, more in (
        storage.runs.units("o", "e", limit=2), storage.runs.units("o", "e", limit=3),
        storage.runs.units("o", "e", project_id="p1"),
    )]  # fmt: skip
    assert names == [(["r2", "r1"], True), (["r2", "r1", "r0"], False), (["r1"], False)]


def test_a_search_looks_at_some_runs_a_page_and_misses_none(storage: Storage) -> None:
    for number in range(9):
        task = "odd" if number % 4 == 1 else "even"
        storage.runs.ingest("o", [start(f"r{number}", float(number % 5), task=task)], now=1.0)
    order = [row.run_id for row in storage.runs.list("o", RunFilter(), limit=9)[0]]
    pages: list[list[str]] = []
    cursor = None
    while cursor is not None or not pages:
        rows, cursor = storage.runs.list("o", RunFilter(q="odd"), limit=9, cursor=cursor, scan=3)
        pages.append([row.run_id for row in rows])
    assert pages == [[name for name in part if name in ("r1", "r5")] for part in (order[:3], order[3:6], order[6:], ())]


def test_the_choices_of_a_project_are_of_its_runs(storage: Storage) -> None:
    for project in ("p", "q"):
        storage.runs.ingest("o", [start(f"r{project}", 1.0, agent_name=f"of {project}", project_id=project)], now=1.0)
    assert storage.runs.choices("o", "p")["agents"] == ["of p"]
    assert storage.runs.choices("o")["agents"] == ["of p", "of q"]


def test_steps_are_read_page_by_page(storage: Storage) -> None:
    storage.runs.ingest("o", [step("r", index) for index in (5, 1, 3)], now=1.0)
    assert [body["step_index"] for body in storage.runs.steps("o", "r", limit=2)] == [1, 3]
    assert [body["step_index"] for body in storage.runs.steps("o", "r", after=3)] == [5]
    assert storage.runs.steps("o", "none") == []
    assert storage.runs.narrow("o", ["r", "none"]).keys() == {"r"}


def test_a_child_names_its_parent(storage: Storage) -> None:
    storage.runs.ingest("o", [start("c", 1.0, parent_run_id="p/1"), start("p/1", 0.5)], now=1.0)
    assert [row.run_id for row in storage.runs.children("o", "p/1")] == ["c"]


def test_a_deleted_run_leaves_nothing(storage: Storage) -> None:
    storage.runs.ingest("o", [start("r", 1.0), step("r", 0), finish("r")], now=1.0)
    storage.notes.add("o", "r", "text", key_id="k", now=1.0, expires=9.0)
    assert storage.runs.delete("o", "r")
    assert not storage.runs.delete("o", "r")
    assert (storage.runs.get("o", "r"), storage.runs.finish_body("o", "r")) == (None, None)
    assert storage.notes.list("o", "r") == []
    storage.runs.ingest("o", [step("r", 1)], now=9e9)  # in another partition
    assert [body["step_index"] for body in storage.runs.steps("o", "r")] == [1]


def test_changed_runs_come_in_the_order_of_the_server_clock(storage: Storage) -> None:
    for now, run in ((3.0, "b"), (1.0, "a"), (2.0, "c")):
        storage.runs.ingest(f"org-{run}", [start(run, 500.0 - now)], now=now)
    assert [row.run_id for row in storage.runs.changed(1.0, 9)] == ["c", "b"]
    assert [row.run_id for row in storage.runs.changed(0.0, 2)] == ["a", "c"]


def test_the_health_summary_counts(storage: Storage) -> None:
    told: dict[str, Any] = {"state": "SLOW", "monitors_fired": ["m"], "failure_type": "loop",
            "injection_sources": ["MonitorSteeringInjection"]}  # fmt: skip
    for name, outcome in (("a", "success"), ("b", "failure: X")):
        storage.runs.ingest("o", [start(name, 5.0), step(name, 0), step(name, 1, **told), finish(name, outcome)], now=1)
    storage.runs.ingest("o", [start("c", 5.0), step("c", 0)], now=1.0)
    storage.runs.ingest("o", [start("old", 1.0), finish("old")], now=1.0)
    assert storage.runs.health("o", since=2.0) == {
        "since": 2.0,
        "runs": 3,
        "live": 1,
        "by_outcome": {"success": 1, "failure": 1},
        "by_state": {"NORMAL": 1, "SLOW": 2},
        "injections": 2,
        "summarised": 2,
        "monitors": {"m": 2},
        "recovered": {"loop": [1, 2]},
        "faults": 0,
        "dropped": 0,
    }
    assert storage.runs.health("o", since=2.0, project_id="none")["runs"] == 0


def test_the_health_summary_counts_the_newest_runs_of_many(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_health, "MOST_RUNS", 3)
    monkeypatch.setattr(_health, "MOST_SUMMARIES", 2)
    for number in range(5):
        events = [
            start(f"r{number}", float(number)),
            step(f"r{number}", 0),
            step(f"r{number}", 1, monitors_fired=["m"]),
        ]
        storage.runs.ingest("o", [*events, finish(f"r{number}", "success" if number else "failure: X")], now=1.0)
    found = storage.runs.health("o", since=0.0)
    assert (found["since"], found["runs"], found["by_outcome"]) == (2.0, 3, {"success": 3})
    assert (found["summarised"], found["monitors"]) == (2, {"m": 2})
    assert storage.runs.health("o", since=3.0)["since"] == 3.0
