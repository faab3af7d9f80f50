"""A key of one project learns and changes nothing of another project of its org."""

from __future__ import annotations

import pytest

from tests.server.routes.walk import PATTERN
from tests.server.routes.world import Body, Caller, World, start, until

TRACE: Body = {"trace_id": "t", "outcome": "success", "steps": []}


@pytest.fixture
def mine(world: World, caller: Caller) -> Caller:
    return world.caller(org=caller.org_id, project="mine")


@pytest.fixture
def theirs(world: World, caller: Caller) -> Caller:
    return world.caller(org=caller.org_id, project="theirs")


def asked(caller: Caller, **fields: object) -> object:
    body = {"run_id": "r", "steps": [{"thought": "t"}], "notes": True, **fields}
    return caller.post("/monitors/evaluate", body)["notes"]


def told_to(caller: Caller) -> object:
    return [note["state"] for note in caller.get("/runs/r/notes")["notes"]]


def test_an_evaluation_hears_and_settles_no_note_of_another_project(
    world: World, caller: Caller, mine: Caller, theirs: Caller
) -> None:
    theirs.send(start("r"))
    asked(theirs)
    world.server.takers.settle(30)
    note_id = theirs.post("/runs/r/notes", {"text": "For them."}, 201)["note_id"]
    assert asked(mine) == asked(mine, notes_told=[note_id]) == []
    world.server.takers.settle(30)
    assert asked(mine, notes_told=[note_id]) == []
    assert asked(theirs) == [{"id": note_id, "text": "For them."}]
    assert asked(theirs, notes_told=[note_id]) == []
    until(lambda: told_to(theirs) == ["told"])


def test_traces_of_another_project_are_neither_listed_nor_replaced(
    caller: Caller, mine: Caller, theirs: Caller
) -> None:
    theirs.post("/traces", {**TRACE, "task": "theirs"}, 202)
    assert mine("GET", "/traces").status_code == 403
    assert mine("POST", "/traces", json={**TRACE, "task": "mine"}).status_code == 409
    theirs.post("/traces", {**TRACE, "task": "again"}, 202)
    assert [trace["task"] for trace in caller.get("/traces")["traces"]] == ["again"]


def test_patterns_are_the_whole_orgs(caller: Caller, mine: Caller) -> None:
    caller.post("/patterns", PATTERN, 201)
    path = f"/patterns/{PATTERN['id']}"
    assert mine("POST", "/patterns", json=PATTERN).status_code == 403
    assert mine("PUT", path, json=PATTERN, headers={"If-Match": "1"}).status_code == 403
    assert mine("DELETE", path).status_code == 403
    assert mine.get(path)["revision"] == 1
    caller("DELETE", path)


def test_an_erased_org_leaves_no_pattern(world: World) -> None:
    caller, stranger = world.caller(), world.caller()
    for one in (caller, stranger):
        one.post("/patterns", {**PATTERN, "id": f"of {one.org_id}"}, 201)
    assert caller("DELETE", "/org").status_code == 200
    assert caller("GET", "/org").status_code == 401
    assert stranger("GET", f"/patterns/of {stranger.org_id}").status_code == 200
    again = world.caller(org=caller.org_id)
    assert again("GET", f"/patterns/of {caller.org_id}").status_code == 404
    stranger("DELETE", f"/patterns/of {stranger.org_id}")


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
