"""A key of one project learns and changes nothing of another project of its org."""

from __future__ import annotations

import pytest

from tests.server.routes.world import Body, Caller, World

TRACE: Body = {"trace_id": "t", "outcome": "success", "steps": []}


@pytest.fixture
def mine(world: World, caller: Caller) -> Caller:
    return world.caller(org=caller.org_id, project="mine")


@pytest.fixture
def theirs(world: World, caller: Caller) -> Caller:
    return world.caller(org=caller.org_id, project="theirs")


def test_traces_of_another_project_are_neither_listed_nor_replaced(
    caller: Caller, mine: Caller, theirs: Caller
) -> None:
    theirs.post("/traces", {**TRACE, "task": "theirs"}, 202)
    assert mine("GET", "/traces").status_code == 403
    assert mine("POST", "/traces", json={**TRACE, "task": "mine"}).status_code == 409
    theirs.post("/traces", {**TRACE, "task": "again"}, 202)
    assert [trace["task"] for trace in caller.get("/traces")["traces"]] == ["again"]


def test_the_patience_of_the_orgs_agents_is_not_learned_from_a_projects_runs(
    caller: Caller, mine: Caller, theirs: Caller
) -> None:
    given = {"agent_name": "a", "run_id": "r"}
    calm, eager = ({"reached": [number] * 7, "needless": [0] * 7, "checks": True} for number in (1, 2))
    caller.post("/monitor/agents/profile", {**given, "summary": calm})
    mine.post("/monitor/agents/profile", {**given, "summary": eager})
    path = "/monitor/agents/profile?agent_name=a"
    assert caller.get(path) == {"summaries": [calm]}
    assert (mine.get(path), theirs.get(path)) == ({"summaries": [eager]}, {"summaries": []})
    listed = {one["project_id"]: one["runs"] for one in caller.get("/monitor/agents")["agents"]}
    assert listed == {"": 1, "mine": 1}
    assert caller("DELETE", f"{path}&project_id=mine").status_code == 204
    assert (caller.get(path), mine.get(path)) == ({"summaries": [calm]}, {"summaries": []})
