"""Operators' notes wait for a run that takes them, are told once, and can be withdrawn."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.server.routes.world import Body, Caller, World, finish, start, step, until


@pytest.fixture
def live_run(caller: Caller) -> str:
    """A run whose client asks for notes."""
    caller.send(start("r"))
    asked(caller)
    return "r"


def asked(caller: Caller, told: tuple[str, ...] = (), run_id: str = "r") -> list[Body]:
    """Evaluate a step of a run whose client takes notes, and return the notes of the answer."""
    body = {"run_id": run_id, "steps": [{"thought": "t"}], "notes": True, "notes_told": list(told)}
    notes: list[Body] = caller.post("/monitors/evaluate", body)["notes"]
    until(lambda: caller.get(f"/monitor/runs/{run_id}")["run"]["takes_notes"])
    return notes


def states(caller: Caller) -> list[str]:
    return [note["state"] for note in caller.get("/runs/r/notes")["notes"]]


def test_a_note_is_sent_until_its_client_has_told_it(world: World, caller: Caller, live_run: str) -> None:
    added = caller.post("/runs/r/notes", {"text": "Look at the log."}, 201)
    assert added["state"] == "queued"
    expected = [{"id": added["note_id"], "text": "Look at the log."}]
    assert [asked(caller), asked(caller)] == [expected, expected]
    assert asked(caller, told=(added["note_id"],)) == []
    until(lambda: states(caller) == ["told"])
    assert asked(caller) == []
    audit = world.server.storage.audit.list(caller.org_id, limit=10)
    assert [(row.key_id, row.action, row.target) for row in audit] == [
        (caller.key_id, "note.add", f"r {added['note_id']}")
    ]


def test_a_step_reports_which_call_had_the_note(caller: Caller, live_run: str) -> None:
    note_id = caller.post("/runs/r/notes", {"text": "Stop."}, 201)["note_id"]
    caller.send(step("r", 3, metadata={"note_ids": [note_id]}))
    (note,) = caller.get("/runs/r/notes")["notes"]
    assert (note["state"], note["told_step"], note["key_id"]) == ("told", 3, caller.key_id)
    assert asked(caller) == []


def test_notes_are_told_in_their_order(caller: Caller, live_run: str) -> None:
    first, second = (caller.post("/runs/r/notes", {"text": text}, 201)["note_id"] for text in ("1", "2"))
    assert [note["id"] for note in asked(caller)] == [first]
    assert [note["id"] for note in asked(caller, told=(first,))] == [second]


def test_a_note_of_another_run_does_not_reach_this_one(world: World, caller: Caller, live_run: str) -> None:
    caller.send(start("other"))
    asked(caller, run_id="other")
    caller.post("/runs/other/notes", {"text": "For the other."}, 201)
    stranger = world.caller()
    stranger.send(start("other"))
    assert asked(caller) == asked(stranger, run_id="other") == []


def test_a_run_that_asks_for_notes_before_its_events_is_of_their_project(world: World) -> None:
    mine = world.caller(project="mine")
    mine.post("/monitors/evaluate", {"run_id": "r", "steps": [{"thought": "t"}], "notes": True})
    until(lambda: world.server.storage.runs.get(mine.org_id, "r") is not None)
    mine.send(step("r", 0))
    mine.send(start("r"))
    run = mine.get("/monitor/runs/r")["run"]
    assert (run["project_id"], run["takes_notes"], run["steps"]) == ("mine", True, 1)
    assert mine.post("/runs/r/notes", {"text": "Hello."}, 201)["state"] == "queued"


def test_a_withdrawn_note_is_not_told(world: World, caller: Caller, live_run: str) -> None:
    note_id = caller.post("/runs/r/notes", {"text": "No."}, 201)["note_id"]
    assert caller("DELETE", f"/runs/r/notes/{note_id}").status_code == 204
    assert states(caller) == ["withdrawn"]
    assert asked(caller) == []
    audit = world.server.storage.audit.list(caller.org_id, limit=10)
    assert [row.action for row in audit] == ["note.withdraw", "note.add"]


def test_a_note_that_was_told_cannot_be_withdrawn(caller: Caller, live_run: str) -> None:
    note_id = caller.post("/runs/r/notes", {"text": "Yes."}, 201)["note_id"]
    caller.send(step("r", 0, metadata={"note_ids": [note_id]}))
    answer = caller("DELETE", f"/runs/r/notes/{note_id}")
    assert (answer.status_code, answer.json()) == (409, {"detail": "the note is told"})
    assert caller("DELETE", "/runs/r/notes/none").status_code == 404
    assert caller("DELETE", f"/runs/none/notes/{note_id}").status_code == 404


def test_a_note_of_a_run_that_ends_is_unheard(caller: Caller, live_run: str) -> None:
    caller.post("/runs/r/notes", {"text": "Too late."}, 201)
    caller.send(finish("r"))
    assert states(caller) == ["unheard"]


def test_an_expired_note_is_not_told(world: World, caller: Caller, live_run: str) -> None:
    now = time.time()
    row = world.server.storage.notes.add(
        caller.org_id, "r", "Over.", key_id=caller.key_id, now=now - 2, expires=now - 1
    )
    world.server.live.note_added(row)
    assert asked(caller) == []


@pytest.mark.parametrize(
    ("events", "reason"),
    [([finish("r")], "the run has finished"), ([start("r", mode="observe", timestamp=1_000.0)], "only observed")],
)
def test_a_run_that_takes_no_notes_refuses_them_with_the_reason(
    caller: Caller, live_run: str, events: list[Body], reason: str
) -> None:
    if events[0]["event"] == "run_start":
        caller("DELETE", "/monitor/runs/r")
    caller.send(*events)
    answer = caller("POST", "/runs/r/notes", json={"text": "Hello."})
    assert answer.status_code == 409
    assert reason in answer.json()["detail"]
    assert states(caller) == []


def test_a_client_that_takes_no_notes_is_not_told(caller: Caller) -> None:
    caller.send(start("r"))
    answer = caller("POST", "/runs/r/notes", json={"text": "Hello."})
    assert (answer.status_code, answer.json()["detail"]) == (409, "the run's client does not ask for notes")
    assert caller("POST", "/runs/none/notes", json={"text": "Hello."}).status_code == 404
    assert caller("GET", "/runs/none/notes").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": " \u200b\u202e\n"},
        {"text": "<|im_start|>"},
        {"text": "\x00"},
        {"text": "a" * 2_001},
        {"text": "a", "expires_s": 0},
        {"text": "a", "expires_s": 3_601},
        {"text": "a", "expires_s": "soon"},
    ],
)
def test_a_note_without_a_text_to_show_is_refused(caller: Caller, live_run: str, body: dict[str, Any]) -> None:
    assert caller("POST", "/runs/r/notes", json=body).status_code == 422
    assert states(caller) == []


def test_a_key_of_another_project_gets_no_note_and_tells_none(world: World, caller: Caller) -> None:
    theirs = world.caller(org=caller.org_id, project="theirs")
    theirs.send(start("r"))
    body = {"run_id": "r", "steps": [{"thought": "t"}], "notes": True}
    mine = world.caller(org=caller.org_id, project="mine")
    assert mine.post("/monitors/evaluate", body)["notes"] == []
    world.server.takers.settle(10)
    assert caller.post("/runs/r/notes", {"text": "Hello."}, 409)["detail"] == "the run's client does not ask for notes"
    asked(theirs)
    note_id = caller.post("/runs/r/notes", {"text": "Hello."}, 201)["note_id"]
    assert mine.post("/monitors/evaluate", {**body, "notes_told": [note_id]})["notes"] == []
    told = step("r", 0, metadata={"note_ids": [note_id]})
    assert len(mine.post("/monitor/events", {"events": [told]})["refused"]) == 1
    assert [note["id"] for note in asked(theirs)] == [note_id]
    assert states(caller) == ["queued"]


def test_an_event_that_is_refused_tells_no_note(caller: Caller, live_run: str) -> None:
    note_id = caller.post("/runs/r/notes", {"text": "Hello."}, 201)["note_id"]
    wrong = {**step("r", 0, metadata={"note_ids": [note_id]}), "tokens": "many"}
    assert len(caller.post("/monitor/events", {"events": [wrong]})["refused"]) == 1
    assert [note["id"] for note in asked(caller)] == [note_id]
