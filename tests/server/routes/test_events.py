"""Events are stored as they were sent, once, in the caller's org."""

from __future__ import annotations

import time
from typing import Any

import pytest

from reasonblocks.events import event_of
from tests.server.routes.world import Body, Caller, World, finish, start, step


def test_a_batch_reads_back_as_it_was_sent(caller: Caller) -> None:
    sent = [
        start("r", agent_name="a", task="t"),
        step("r", 0, tokens=7),
        step("r", 1, scores={"own": 0.5}),
        finish("r"),
    ]
    assert caller.send(*sent)["accepted"] == 4
    page = caller.get("/monitor/runs/r")
    read = [page["run"]["start"], *page["steps"], page["run"]["finish"]]
    ours = event_of({**sent[0], "org_id": caller.org_id}).as_dict()
    assert read == [ours, *[event_of(event).as_dict() for event in sent[1:]]]


def test_an_invalid_event_is_refused_alone(caller: Caller) -> None:
    answer = caller.post("/monitor/events", {"events": [start("r"), {"event": "other"}, step("r", -1), step("r", 0)]})
    assert answer["accepted"] == 2
    assert [one["index"] for one in answer["refused"]] == [1, 2]
    assert all(name in one["detail"] for name, one in zip(("'event'", "'step_index'"), answer["refused"]))


def test_more_events_than_a_batch_may_have_are_too_large(caller: Caller) -> None:
    answer = caller("POST", "/monitor/events", json={"events": [{}] * 1_001})
    assert answer.status_code == 413
    assert caller.get("/monitor/runs")["runs"] == []


class TestOlderClients:
    """The routes that take one event, which lacks a time."""

    def test_a_run(self, caller: Caller) -> None:
        before = time.time()
        assert caller.post("/monitor/runs", {"run_id": "r", "task": "t", "model": None}) == {"run_id": "r"}
        scored = caller.post(
            "/monitor/runs/r/steps",
            {"step_index": 0, "scores": {"own": 0.5}, "composite": 0.25, "monitors_fired": ["own"], "tokens": None},
        )
        assert scored == {"scores": {"own": 0.5}, "total_score": 0.25, "fired": ["own"]}
        assert caller.post("/monitor/runs/r/steps", {"step_index": 1}) == {
            "scores": {},
            "total_score": 0.0,
            "fired": [],
        }
        assert caller.post("/monitor/runs/r/finish", {"outcome": "success"}) == {"run_id": "r", "outcome": "success"}
        run = caller.get("/monitor/runs/r")["run"]
        assert (run["steps"], run["outcome"], run["task"]) == (2, "success", "t")
        assert before <= run["started"] <= run["finished"] <= time.time()

    def test_a_start_that_is_sent_again_loses_no_step(self, caller: Caller) -> None:
        caller.post("/monitor/runs", {"run_id": "r"})
        caller.post("/monitor/runs/r/steps", {"step_index": 0})
        caller.post("/monitor/runs", {"run_id": "r"})
        assert len(caller.get("/monitor/runs/r")["steps"]) == 1

    def test_a_start_may_come_after_its_steps(self, caller: Caller) -> None:
        caller.post("/monitor/runs/r/steps", {"step_index": 0})
        caller.post("/monitor/runs", {"run_id": "r", "task": "late"})
        page = caller.get("/monitor/runs/r")
        assert (page["run"]["task"], len(page["steps"])) == ("late", 1)

    def test_the_end_of_a_run_that_is_only_a_reason_is_a_failure(self, caller: Caller) -> None:
        ended = {"run_id": "r", "outcome": "failure: the tests still fail"}
        assert caller.post("/monitor/runs/r/finish", {"outcome": "the tests still fail"}) == ended
        assert caller.get("/monitor/runs/r")["run"]["outcome"] == ended["outcome"]

    @pytest.mark.parametrize(
        ("path", "body", "field"),
        [
            ("/monitor/runs", {}, "run_id"),
            ("/monitor/runs", {"run_id": ""}, "run_id"),
            ("/monitor/runs", {"run_id": "r", "mode": "none"}, "mode"),
            ("/monitor/runs/r/steps", {}, "step_index"),
            ("/monitor/runs/r/steps", {"step_index": -1}, "step_index"),
            ("/monitor/runs/r/steps", {"step_index": 0, "composite": 2}, "composite"),
            ("/monitor/runs/r/steps", {"step_index": 0, "tool_calls": 1}, "tool_calls"),
            ("/monitor/runs/r/finish", {}, "outcome"),
            ("/monitor/events", {"events": 1}, "events"),
        ],
    )
    def test_an_invalid_field_is_named(self, caller: Caller, path: str, body: Body, field: str) -> None:
        answer = caller("POST", path, json=body)
        assert (answer.status_code, field in answer.json()["detail"]) == (422, True), answer.text
        assert caller.get("/monitor/runs")["runs"] == []

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"run_id": NaN}'])
    def test_a_body_that_is_no_object_is_refused(self, caller: Caller, content: Any) -> None:
        assert caller("POST", "/monitor/runs", content=content).status_code in (400, 422)


def test_a_long_run_is_summarised_soon_after_its_end(
    world: World, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonblocks_server.storage._ingest.SUMMARISED_AT_ONCE", 2)
    caller.send(*[step("long", index) for index in range(4)], finish("long"))
    caller.send(step("long", 4))
    assert world.server.summarising.wait(20)
    row = world.server.storage.runs.get(caller.org_id, "long")
    assert row is not None
    assert row.summary is not None
    assert row.summary["calls"] == 5
