"""A key of another org sees and changes nothing of this one, on any route."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from reasonblocks_server.auth import THREADS_OF_ORG
from reasonblocks_server.values import Principal, Scope
from tests.server.routes.walk import KNOWN, PATTERN, Operation
from tests.server.routes.world import Body, Caller, World, start, step

MARK = "text of one org only"
NEVER = ("GET", "/monitor/stream")
"""The only route whose answer for the caller's own run does not end."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An org that has one thing of each kind, all of them with the mark."""

    caller: Caller
    world: World
    places: Mapping[str, str]

    def everything(self) -> Body:
        """Return all that the org sees of itself."""
        found = {}
        for (method, path), route in KNOWN.items():
            if method == "GET" and (method, path) != NEVER:
                found[path] = self.caller.get(f"{path.format(**self.places)}{route.query}")
        for key in found["/keys"]["keys"]:
            del key["used"]
        return found


COUNTS = {"reached": [9123] * 7, "needless": [0] * 7, "checks": True}


@pytest.fixture(scope="module")
def owner(world: World) -> Owner:
    caller = world.caller()
    metadata = {"experiment_id": "experiment", "arm": "on", "assignment_unit": MARK}
    caller.send(start("run", task=MARK, agent_name=MARK, metadata=metadata), step("run", 0, thought=MARK))
    world.server.storage.runs.takes_notes(caller.org_id, "run", time.time())
    note_id = caller.post("/runs/run/notes", {"text": MARK}, 201)["note_id"]
    caller.post("/monitor/profiles", {"name": "profile", "weights": {"semantic_loop": 0.123}})
    caller.post("/monitor/agents/profile", {"agent_name": "agent", "run_id": MARK, "summary": COUNTS})
    caller.post("/traces", {"trace_id": "trace", "outcome": MARK, "steps": []}, 202)
    pattern = {**PATTERN, "fields": _marked(PATTERN["fields"])}
    caller.post("/patterns", pattern, 201)
    key_id = caller.post("/keys", {"name": MARK, "scopes": ["read"]}, 201)["key_id"]
    caller.post(f"/findings/{MARK}", {"content": MARK, "file_path": "a.py"})
    places = {"run_id": "run", "note_id": note_id, "key_id": key_id, "pattern_id": "pattern",
              "experiment_id": "experiment", "codebase_id": MARK}  # fmt: skip
    return Owner(caller, world, places)


@pytest.fixture(scope="module")
def strangers(world: World) -> Mapping[bool, Caller]:
    """A caller of another org that adds things, by True, and one that has nothing."""
    return {adds: world.caller() for adds in (True, False)}


def _marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _marked(item) for name, item in value.items()}
    return MARK if value == "MARK" else value


def test_the_owner_sees_its_own(owner: Owner) -> None:
    found = owner.everything()
    bare = {"/health", "/ready", "/org", "/monitor/scorers", "/monitor/health-summary"}
    empty = {path for path, body in found.items() if not any(mark in str(body) for mark in (MARK, "0.123", "9123"))}
    assert empty - bare == {"/monitor/experiments", "/monitor/experiments/{experiment_id}/report", "/monitor/agents"}
    assert found["/monitor/experiments"]["experiments"]


@pytest.mark.parametrize("operation", KNOWN, ids=" ".join)
def test_another_org_learns_and_changes_nothing(
    owner: Owner, strangers: Mapping[bool, Caller], operation: Operation
) -> None:
    before = owner.everything()
    method, path = operation
    route = KNOWN[operation]
    stranger = strangers[method in ("POST", "PUT") and (method, path) not in _OF_A_RUN]
    headers = {"If-Match": "1"} if method == "PUT" else {}
    answer = stranger(method, f"{path.format(**owner.places)}{route.query}", json=route.body, headers=headers)
    if "/findings/" in path:
        assert answer.json() in _NOTHING or method == "POST", answer.text
    elif ("{" in path and method != "POST") or (method, path) in _OF_A_RUN:
        assert answer.status_code == 404, answer.text
    assert MARK not in answer.text
    assert "0.123" not in answer.text
    assert "9123" not in answer.text
    assert owner.everything() == before
    if operation == ("POST", "/patterns"):  # two orgs may have patterns of one id
        stranger("DELETE", f"/patterns/{PATTERN['id']}")


_OF_A_RUN = {NEVER, ("POST", "/runs/{run_id}/notes"), ("DELETE", "/monitor/agents/profile")}
_NOTHING: tuple[Body, ...] = ({"findings": [], "next": None}, {"status": "cleared", "cleared": 0})
"""The answers for a codebase without findings: any org may have one with this id."""


def test_the_slow_requests_of_an_org_leave_threads_for_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, waiting = threading.Event(), threading.Semaphore(0)

    def slow(org_id: str) -> list[tuple[str, int, float]]:
        waiting.release()
        gate.wait(30)
        return []

    monkeypatch.setattr(world.server.storage.runs, "experiments", slow)
    crowd, other = world.caller(), world.caller()
    with ThreadPoolExecutor(60) as pool:
        answers = [pool.submit(crowd, "GET", "/monitor/experiments") for _ in range(60)]
        try:
            for _ in range(THREADS_OF_ORG):
                assert waiting.acquire(timeout=30)
            assert other.get("/monitor/runs") == {"runs": [], "next_cursor": None}
            assert not waiting.acquire(blocking=False)
        finally:
            gate.set()
        assert {answer.result().status_code for answer in answers} == {200}


def test_no_name_of_a_codebase_takes_a_request_out_of_its_orgs_places(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = list[str]()
    place = world.server.auth.place

    def recorded(principal: Principal, scope: Scope) -> AbstractAsyncContextManager[None]:
        held.append(scope)
        return place(principal, scope)

    monkeypatch.setattr(world.server.auth, "place", recorded)
    world.caller().post("/findings/acme/stream", {"content": "Run tox."})
    assert held == ["evaluate"]
