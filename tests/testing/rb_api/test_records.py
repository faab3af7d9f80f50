"""The scripted rb-api is the real server: its keys, patterns, events and notes, and the requests that it records."""

from __future__ import annotations

import gzip
import json
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

import pytest

from reasonblocks import Pattern
from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.types import RunInfo
from reasonblocks_testing.rb_api import KEY, ScriptedRbApi
from tests.testing.rb_api.asking import LOOP, ask, connection, evaluated, post, told

STEP: dict[str, Any] = dict(StepEvent(run_id="run-1", step_index=3, timestamp=1.0, scores={"loop": 0.5}).as_dict())
START: dict[str, Any] = dict(RunStart(run=RunInfo(run_id="run-1", framework="custom"), timestamp=1.0).as_dict())
FINISH: dict[str, Any] = dict(RunFinish(run_id="run-1", outcome="success", timestamp=2.0).as_dict())
OTHER = "rbk_another_key_of_tests"
COUNTS = {"reached": [1] * 7, "needless": [0] * 7, "checks": True}
SUMMARY = {"agent_name": "a b", "task_profile": "qa", "run_id": "r1", "summary": COUNTS}
ODD_LENGTHS = [
    (b"Transfer-Encoding: chunked", 411),
    (b"Content-Length: 2\r\nTransfer-Encoding: chunked", 411),
    (b"Content-Length: 0\r\nContent-Length: 40", 400),
    (b"Content-Length: -1", 400),
    (b"Content-Length: " + b"9" * 5_000, 413),
]


def test_health_needs_no_key(api: ScriptedRbApi) -> None:
    status, answer = ask(api, "GET", "/health", headers={"Authorization": ""})
    assert (status, answer["status"]) == (200, "ok")


@pytest.mark.parametrize("path", ["/monitors/evaluate", "/v1/monitors/evaluate"])
def test_a_route_is_served_with_and_without_its_version(api: ScriptedRbApi, path: str) -> None:
    status, answer = post(api, path, {"steps": [LOOP]})
    assert (status, set(answer["scores"]) > {"semantic_loop"}, answer["partial"]) == (200, True, False)


def test_patterns_are_retrieved_for_the_org_of_the_key() -> None:
    fields = {"observation": "The clock is UTC.", "recommended_action": "Compare in UTC."}
    said = "The date is wrong again."
    lessons = [Pattern(id=org, tier="e1", org_id=org, fields=fields, exemplars=(said,)) for org in ("ours", "theirs")]
    with ScriptedRbApi(keys={KEY: "ours"}, patterns=lessons) as api:
        status, answer = post(api, "/v1/traces/retrieve", {"texts": [said], "tier": "e1", "top_k": 5})
        older = post(api, "/traces/retrieve", {"context": said, "level": "e1"})
    assert (status, [trace["pattern_id"] for trace in answer["traces"]]) == (200, ["ours"])
    assert older == (200, answer)


def test_a_batch_of_events_is_kept_once(api: ScriptedRbApi) -> None:
    body = gzip.compress(json.dumps({"events": [START, STEP, STEP, {"event": "party"}, FINISH]}).encode())
    status, answer = ask(api, "POST", "/v1/monitor/events", body, {"Content-Encoding": "gzip"})
    assert (status, answer["accepted"], answer["repeated"]) == (200, 3, 1)
    assert [item["index"] for item in answer["refused"]] == [3]
    assert api.events == [START, STEP, FINISH]


def test_the_profile_of_an_agent_is_that_of_its_org() -> None:
    with ScriptedRbApi(keys={KEY: "acme", OTHER: "other"}) as api:
        assert post(api, "/monitor/agents/profile", SUMMARY) == (200, {"stored": True})
        assert post(api, "/v1/monitor/agents/profile", {**SUMMARY, "run_id": "r2"}) == (200, {"stored": True})
        asked = "/v1/monitor/agents/profile?agent_name=a%20b&task_profile=qa&but=r2"
        assert ask(api, "GET", asked) == (200, {"summaries": [COUNTS]})
        assert ask(api, "GET", asked, headers={"Authorization": f"Bearer {OTHER}"}) == (200, {"summaries": []})
        api.forget()
        assert ask(api, "GET", asked) == (200, {"summaries": []})


def test_forgotten_runs_are_gone(api: ScriptedRbApi) -> None:
    post(api, "/monitor/events", {"events": [STEP]})
    api.add_note("run-1", "Look at the clock.")
    api.forget()
    assert (api.events, api.notes) == ([], [])


def test_the_oldest_note_is_in_each_answer_until_it_was_told(api: ScriptedRbApi) -> None:
    first, second = api.add_note("run-1", "Look at the clock."), api.add_note("run-1", "Then stop.")
    api.add_note("run-2", "Not for you.")
    assert evaluated(api)["notes"] == []
    assert [evaluated(api, notes=True)["notes"][0]["id"] for _ in range(2)] == [first.id, first.id]
    assert evaluated(api, notes=True, notes_told=[first.id])["notes"] == [{"id": second.id, "text": "Then stop."}]
    assert [item.told for item in api.notes] == [True, False, False]


def test_a_step_event_reports_the_notes_of_its_call(api: ScriptedRbApi) -> None:
    note = api.add_note("run-1", "Look at the clock.")
    post(api, "/monitor/events", {"events": [{**STEP, "metadata": {"note_ids": [note.id]}}]})
    assert evaluated(api, notes=True)["notes"] == []


def test_an_api_that_does_not_run_says_so() -> None:
    api = ScriptedRbApi()
    for use in (lambda: api.url, lambda: api.events, lambda: api.add_note("r", "Stop."), api.forget, api.open_port):
        with pytest.raises(RuntimeError, match="use it as a context manager"):
            use()


def test_streams_are_not_served(api: ScriptedRbApi) -> None:
    assert ask(api, "GET", "/v1/monitor/stream")[0] == 501


def test_a_revoked_key_is_refused(api: ScriptedRbApi) -> None:
    api.revoke()
    assert post(api, "/monitors/evaluate", {"steps": []})[0] == 401


def test_a_body_has_a_limit_and_so_has_its_content(api: ScriptedRbApi) -> None:
    bomb = gzip.compress(b" " * 9_000_000)
    assert ask(api, "POST", "/score", bomb, {"Content-Encoding": "gzip"})[0] == 413
    assert ask(api, "POST", "/score", b"no gzip", {"Content-Encoding": "gzip"})[0] == 400
    with connection(api) as client:
        client.putrequest("POST", "/score")
        client.putheader("Content-Length", "5000001")
        client.endheaders()
        assert client.getresponse().status == 413


def test_a_request_is_recorded_with_its_bytes(api: ScriptedRbApi) -> None:
    with connection(api) as client:
        told(client, "POST", "/v1/score?x=1", b'{"text": "hello"}', {"X-Who": "a test"})
        (request,) = api.requests
    assert (request.method, request.path, request.query) == ("POST", "/score", {"x": "1"})
    assert request.body == {"text": "hello"}
    assert (request.headers["authorization"], request.headers["x-who"]) == (f"Bearer {KEY}", "a test")
    assert len(b'POST /v1/score?x=1 HTTP/1.1\r\n{"text": "hello"}') < request.up < 400
    assert (request.status, len(b'HTTP/1.1 200 OK\r\n{"difficulty":0.1}') < request.down < 400) == (200, True)


def test_a_connection_is_kept_for_the_next_request(api: ScriptedRbApi) -> None:
    with connection(api) as client:
        told(client, "GET", "/health")
        kept = client.sock
        told(client, "GET", "/health")
        assert client.sock is kept
    first, second = api.requests
    assert first.up == second.up


@pytest.mark.parametrize(("lengths", "status"), ODD_LENGTHS, ids=lambda value: str(value)[:60])
def test_a_body_of_unknown_length_is_never_read_as_a_request(api: ScriptedRbApi, lengths: bytes, status: int) -> None:
    hidden = b"GET /health HTTP/1.1\r\n\r\n"
    with create_connection(("127.0.0.1", urlsplit(api.url).port or 0), 10.0) as client:
        client.sendall(b"POST /v1/score HTTP/1.1\r\n" + lengths + b"\r\n\r\n" + hidden)
        answers = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answers.startswith(b"HTTP/1.1 %d " % status)
    assert answers.count(b"HTTP/1.1 ") == len(api.requests) == 1
