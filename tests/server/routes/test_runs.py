"""Runs are listed, returned, deleted and counted."""

from __future__ import annotations

import time

import pytest

from tests.server.routes.world import Caller, World, finish, start, step


@pytest.fixture(scope="module")
def many(world: World) -> Caller:
    """A caller with 5 runs: r0 to r4, of which r4 started last."""
    caller = world.caller()
    for number in range(5):
        name = f"r{number}"
        agent = "even" if number % 2 == 0 else "odd"
        caller.send(start(name, agent_name=agent, task=f"Task {number}", timestamp=1_000.0 + number))
    caller.send(step("r0", 0, failure_type="loop", metadata={"fsm_state": "SLOW"}), finish("r0", "failure: E"))
    caller.send(finish("r1"), finish("r2", "stopped: cap"), finish("r3", "gave up"))
    return caller


def ids(caller: Caller, **params: object) -> list[str]:
    return [run["run_id"] for run in caller.get("/monitor/runs", params=params)["runs"]]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, ["r4", "r3", "r2", "r1", "r0"]),
        ({"limit": 2}, ["r4", "r3"]),
        ({"agent": "odd"}, ["r3", "r1"]),
        ({"outcome": "success"}, ["r1"]),
        ({"outcome": "failure"}, ["r0"]),
        ({"outcome": "stopped"}, ["r2"]),
        ({"outcome": "unknown"}, ["r3"]),
        ({"outcome": "live"}, ["r4"]),
        ({"failure_type": "loop"}, ["r0"]),
        ({"state": "SLOW"}, ["r0"]),
        ({"since": 1_003.0}, ["r4", "r3"]),
        ({"q": "TASK 2"}, ["r2"]),
        ({"q": "%"}, []),
        ({"arm": "on"}, []),
    ],
)
def test_a_list_has_the_chosen_runs(many: Caller, params: dict[str, object], expected: list[str]) -> None:
    assert ids(many, **params) == expected


def test_cursors_lead_through_all_runs_once(many: Caller) -> None:
    seen, cursor = [], None
    while True:
        body = many.get("/monitor/runs", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        seen += [run["run_id"] for run in body["runs"]]
        cursor = body["next_cursor"]
        if cursor is None:
            break
    assert seen == ["r4", "r3", "r2", "r1", "r0"]


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=x", "cursor=x", "cursor=%00", "outcome=none", "since=-1", "since=nan", "q=%00"],
)
def test_an_invalid_filter_is_named(caller: Caller, query: str) -> None:
    answer = caller("GET", f"/monitor/runs?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(query.partition("=")[0])


def test_the_steps_of_a_run_are_read_in_pages(caller: Caller) -> None:
    caller.send(*[step("r", index) for index in range(5)])
    first = caller.get("/monitor/runs/r", params={"limit": 3})
    rest = caller.get("/monitor/runs/r", params={"limit": 3, "after": first["next_after"]})
    assert [step["step_index"] for step in first["steps"] + rest["steps"]] == [0, 1, 2, 3, 4]
    assert rest["next_after"] is None


def test_a_run_without_its_start_and_end_shows_none(caller: Caller) -> None:
    caller.send(step("r", 0))
    run = caller.get("/monitor/runs/r")["run"]
    assert (run["start"], run["finish"], run["outcome"], run["summary"]) == (None, None, None, None)


@pytest.mark.parametrize("query", ["after=-2", "limit=0", "limit=501", "after=x"])
def test_an_invalid_page_is_refused(caller: Caller, query: str) -> None:
    caller.send(start("r"))
    assert caller("GET", f"/monitor/runs/r?{query}").status_code == 422


def test_an_unknown_run_is_not_found(caller: Caller) -> None:
    for method in ("GET", "DELETE"):
        answer = caller(method, "/monitor/runs/r")
        assert (answer.status_code, answer.json()) == (404, {"detail": "there is no run 'r'"})


def test_a_deleted_run_is_gone_with_its_steps(world: World, caller: Caller) -> None:
    caller.send(start("r"), step("r", 0), start("other"))
    assert caller("DELETE", "/monitor/runs/r").status_code == 204
    assert caller("GET", "/monitor/runs/r").status_code == 404
    assert ids(caller) == ["other"]
    caller.send(step("r", 1))
    assert [step["step_index"] for step in caller.get("/monitor/runs/r")["steps"]] == [1]
    audit = world.server.storage.audit.list(caller.org_id, limit=10)
    assert [(row.key_id, row.action, row.target) for row in audit] == [(caller.key_id, "run.delete", "r")]


def test_a_key_of_a_project_sees_its_runs_only(world: World, caller: Caller) -> None:
    mine = world.caller(org=caller.org_id, project="mine")
    caller.send(start("theirs", project_id="other"))
    mine.send(start("mine"))
    assert ids(mine) == ["mine"]
    assert mine.get("/monitor/health-summary", params={"since": 0})["runs"] == 1
    for method in ("GET", "DELETE"):
        assert mine(method, "/monitor/runs/theirs").status_code == 404
    assert ids(caller) == ["mine", "theirs"]


def test_the_health_summary_counts_the_last_seven_days_by_default(caller: Caller) -> None:
    now, day = time.time(), 86_400.0
    caller.send(*[start(f"r{days}", timestamp=now - days * day) for days in (1, 6, 8)])
    found = caller.get("/monitor/health-summary")
    assert found["runs"] == 2
    assert found["since"] == pytest.approx(now - 7 * day, abs=day / 2)
