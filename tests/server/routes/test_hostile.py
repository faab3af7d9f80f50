"""Hostile ids and bodies are answered with 4xx or stored unchanged; none causes a server error."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.server.routes.world import Caller, World, start, step
from tests.whole import QUICK_EXAMPLES, WHOLE

IDS = [
    "../x", "..", ".", "a/b?", "%", "%2F", "%252F", "%00", "/", "//a//", "a/steps", "a/finish", "x/notes/y", "+", "#",
    "\n", "health-summary", "a b+c&d=e#f", "a\r\n\r\nGET / HTTP/1.1", "\u202e\u2028\x1b[2J", "é" * 100, "🙂" * 50,
    "'; DROP TABLE runs; --", "{run_id}", "a" * 400,
]  # fmt: skip


def encoded(run_id: str) -> str:
    """Percent-encode an id, including dots, which a client would resolve."""
    return quote(run_id, safe="").replace(".", "%2E")


def found_again(caller: Caller, run_id: str) -> None:
    """Store a run by both routes, read it, send it a note, and delete it."""
    name = encoded(run_id)
    path = f"/monitor/runs/{name}"
    caller.send(start(run_id), step(run_id, 0))
    caller.post(f"{path}/steps", {"step_index": 1})
    caller.post(f"{path}/finish", {"outcome": "success"})
    page = caller.get(path)
    assert (page["run"]["run_id"], page["run"]["outcome"], len(page["steps"])) == (run_id, "success", 2)
    assert caller.get(f"/runs/{name}/notes") == {"notes": []}
    assert caller("POST", f"/runs/{name}/notes", json={"text": "a"}).status_code == 409
    assert run_id in [run["run_id"] for run in caller.get("/monitor/runs")["runs"]]
    assert caller("DELETE", path).status_code == 204


@pytest.fixture(scope="module")
def one(world: World) -> Caller:
    return world.caller()


@pytest.mark.parametrize("run_id", IDS, ids=range(len(IDS)))
def test_a_run_is_found_by_any_id(one: Caller, run_id: str) -> None:
    found_again(one, run_id)


@settings(max_examples=100 if WHOLE else QUICK_EXAMPLES // 2, deadline=None)
@given(run_id=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=120))
def test_a_run_is_found_by_any_text(one: Caller, run_id: str) -> None:
    found_again(one, run_id)


@pytest.mark.parametrize("run_id", ["", "a" * 513, "a\x00b"])
def test_an_id_that_is_no_id_is_refused(one: Caller, run_id: str) -> None:
    path = encoded(run_id)
    assert 400 <= one("GET", f"/monitor/runs/{path}").status_code < 500
    assert 400 <= one("POST", f"/monitor/runs/{path}/steps", json={"step_index": 0}).status_code < 500
    assert 400 <= one("POST", f"/runs/{path}/notes", json={"text": "a"}).status_code < 500


def test_a_long_id_is_shortened_and_found(one: Caller) -> None:
    one.send(start("a" * 512))
    shown = one.get(f"/monitor/runs/{'a' * 512}")["run"]["run_id"]
    assert shown != "a" * 512
    assert one.get(f"/monitor/runs/{encoded(shown)}")["run"]["run_id"] == shown


def test_a_path_that_is_not_utf_8_is_refused(one: Caller) -> None:
    answer = one("GET", "/monitor/runs/%FF%FE")
    assert (answer.status_code, answer.json()["detail"]) == (400, "run_id: must be percent-encoded UTF-8")


DEEP = 100_000
BODIES = {
    "nothing": b"",
    "not JSON": b"{'a': 1}",
    "two objects": b"{} {}",
    "a text": b'"text"',
    "a half": b'{"events": [',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "NaN": b'{"events": [{"event": "step", "run_id": "r", "step_index": 0, "timestamp": NaN}]}',
    "infinity": b'{"events": [{"event": "step", "run_id": "r", "step_index": 0, "timestamp": 1e999}]}',
    "a huge number": b'{"events": [], "a": ' + b"9" * 5_000 + b"}",
    "deep lists": b'{"events": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"events": [' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"]}",
    "not UTF-8": b'{"events": "\xff\xfe"}',
    "a lone surrogate": b'{"text": "\\ud800", "run_id": "\\ud800", "name": "\\udfff"}',
    "too large": b'{"a": "' + b"x" * 5_000_001 + b'"}',
}
POSTS = (
    "/monitor/events", "/monitor/runs", "/monitor/runs/r/steps", "/monitor/runs/r/finish", "/runs/r/notes", "/traces",
    "/monitor/profiles", "/monitor/agents/profile", "/keys", "/patterns", "/monitors/evaluate", "/traces/retrieve",
    "/score",
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_hostile_body_is_refused_on_every_route(one: Caller, body: bytes) -> None:
    for path in POSTS:
        sent = one("POST", path, content=body, headers={"Content-Type": "application/json"})
        assert 400 <= sent.status_code < 500 or _is_harmless(path, body, sent.json()), (path, sent.text)
        assert set(sent.json()) >= {"detail"} or sent.is_success


def _is_harmless(path: str, body: bytes, answer: object) -> bool:
    """Return True for requests that store nothing: a text to score, and an empty batch with an unknown field."""
    if path == "/score":
        return b"text" in body
    nothing = {"accepted": 0, "repeated": 0, "refused": []}
    return path == "/monitor/events" and b'"events": []' in body and answer == nothing


@pytest.mark.parametrize(
    "event",
    [
        {"event": "step", "run_id": "r", "step_index": 2**63, "timestamp": 1.0},
        {"event": "step", "run_id": "r", "step_index": 1.5, "timestamp": 1.0},
        {"event": "step", "run_id": "", "step_index": 0, "timestamp": 1.0},
        {"event": "step", "run_id": ["r"], "step_index": 0, "timestamp": 1.0},
        {"event": "step", "run_id": "r", "step_index": 0, "timestamp": 1e308 * 10},
        {"event": ["step"], "run_id": "r"},
        {"event": "run_start", "run_id": {}, "timestamp": 1.0},
        {},
    ],
)
def test_a_hostile_event_is_refused(one: Caller, event: dict[str, object]) -> None:
    answer = one("POST", "/monitor/events", content=json.dumps({"events": [event]}).encode())
    assert answer.status_code == 422 or [row["index"] for row in answer.json()["refused"]] == [0], answer.text
