"""The routes of the scripted rb-api: answers, errors, and the recorded requests."""

from __future__ import annotations

import gzip
import json
from socket import create_connection
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from reasonblocks import LocalStore, Pattern
from reasonblocks.engine.scoring import score_text
from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.monitors.calibration import SHIPPED_LEVEL
from reasonblocks.types import RunInfo
from reasonblocks_testing.rb_api import KEY, ScriptedRbApi
from tests.testing.rb_api.asking import LOOP, ask, connection, evaluated, post, told

STEP: dict[str, Any] = dict(StepEvent(run_id="run-1", step_index=3, timestamp=1.0, scores={"loop": 0.5}).as_dict())
START: dict[str, Any] = dict(RunStart(run=RunInfo(run_id="run-1", framework="custom"), timestamp=1.0).as_dict())


def finish(outcome: str) -> dict[str, Any]:
    return dict(RunFinish(run_id="run-1", outcome=outcome, timestamp=2.0).as_dict())


def test_health_needs_no_key(api: ScriptedRbApi) -> None:
    status, answer = ask(api, "GET", "/health", headers={"Authorization": ""})
    assert (status, answer["status"]) == (200, "ok")


@pytest.mark.parametrize("path", ["/monitors/evaluate", "/v1/monitors/evaluate"])
def test_a_route_is_served_with_and_without_its_version(api: ScriptedRbApi, path: str) -> None:
    status, answer = post(api, path, {"steps": [LOOP]})
    assert (status, set(answer["scores"]) > {"semantic_loop"}, answer["partial"]) == (200, True, False)


def test_a_whole_trajectory_in_flat_steps_is_evaluated_without_an_account(api: ScriptedRbApi) -> None:
    answer = evaluated(api, steps=[LOOP] * 6)
    assert (answer["fired"], answer["inject"], answer["partial"]) == (["semantic_loop"], True, False)


def test_one_step_of_several_is_partial_without_an_account(api: ScriptedRbApi) -> None:
    answer = evaluated(api, from_step=5)
    assert (answer["fired"], answer["partial"]) == ([], True)


def test_the_settings_of_a_request_are_used(api: ScriptedRbApi) -> None:
    told = [evaluated(api, steps=[LOOP] * 3, patience={"rung": rung})["inject"] for rung in ("2 of 3", "4 of 5")]
    assert told == [True, False]
    weights = evaluated(api, steps=[LOOP] * 6, weights={"semantic_loop": 0.0})
    assert weights["composite"] < evaluated(api, steps=[LOOP] * 6)["composite"]


def test_an_observed_monitor_joins_the_scores_and_its_failure_type_the_answer(api: ScriptedRbApi) -> None:
    own = {"name": "mine", "score": 0.9, "evidence": [0], "failure_type": "my trouble"}
    answer = evaluated(api, observed=[own])
    assert (answer["scores"]["mine"], answer["fired"], answer["failure_type"]) == (0.9, ["mine"], "my trouble")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"from_step": -1}, "from_step"),
        ({"steps": "none"}, "steps"),
        ({"weights": {"no_such_monitor": 0.5}}, "weights"),
        ({"tool_roles": {"run": "no such role"}}, "tool_roles"),
        ({"observed": [{"name": "semantic_loop", "score": 0.5}]}, "observed"),
        ({"observed": [{"name": "_suite", "score": 0.5}]}, "observed"),
        ({"observed": [{"name": "mine", "score": 0.5}] * 2}, "observed"),
        ({"observed": [{"name": "mine", "score": 0.5, "evidence": [1]}]}, "observed.evidence"),
        ({"observed": [{"name": f"mine {n}", "score": 0.5} for n in range(40)]}, "observed"),
        ({"observed": [{"name": "mine", "score": 1.5}]}, "observed.0.score"),
        ({"observed": [{"name": "m" * 300, "score": 0.5}]}, "observed.name"),
        ({"observed": [{"name": "mine", "score": 0.5, "failure_type": "\ud800"}]}, "observed.failure_type"),
        ({"run_id": "run \ud800"}, "run_id"),
        ({"patience": {"rung": "9 of 9"}}, "patience.rung"),
        ({"account": {"letters": "A" * 99}}, "account.letters"),
    ],
)
def test_an_invalid_field_is_named(api: ScriptedRbApi, body: dict[str, Any], named: str) -> None:
    status, answer = post(api, "/monitors/evaluate", {"steps": [LOOP], **body})
    assert (status, named in answer["detail"]) == (422, True)


def test_an_unknown_profile_is_judged_as_coding(api: ScriptedRbApi) -> None:
    assert evaluated(api, task_profile="gardening") == evaluated(api, task_profile="coding")


def test_patterns_are_retrieved_for_the_org_of_the_key() -> None:
    fields = {"observation": "The clock is UTC.", "recommended_action": "Compare in UTC."}
    said = "The date is wrong again."
    lessons = [Pattern(id=org, tier="e1", org_id=org, fields=fields, exemplars=(said,)) for org in ("ours", "theirs")]
    with ScriptedRbApi(keys={KEY: "ours"}, store=LocalStore(patterns=lessons)) as api:
        status, answer = post(api, "/v1/traces/retrieve", {"texts": [said], "tier": "e1", "top_k": 5})
        older = post(api, "/traces/retrieve", {"context": said, "level": "e1"})
    assert (status, [trace["pattern_id"] for trace in answer["traces"]]) == (200, ["ours"])
    assert older == (200, answer)


@pytest.mark.parametrize(
    "body",
    [{"tier": "e4"}, {"tier": "e1", "top_k": 0}, {"tier": "e1", "top_k": 51}, {"tier": "e1", "texts": ["x"] * 17}, {}],
)
def test_an_invalid_search_is_refused(api: ScriptedRbApi, body: dict[str, Any]) -> None:
    assert post(api, "/traces/retrieve", {"context": "x", **body})[0] == 422


def test_a_text_has_the_difficulty_of_the_scorer(api: ScriptedRbApi) -> None:
    text = "Perhaps I should check that error again."
    assert post(api, "/v1/score", {"text": text}) == (200, {"difficulty": score_text(text, SHIPPED_LEVEL)})


# --- telemetry


def test_a_batch_of_events_is_kept_once(api: ScriptedRbApi) -> None:
    body = gzip.compress(json.dumps({"events": [START, STEP, STEP, {"event": "party"}]}).encode())
    status, answer = ask(api, "POST", "/v1/monitor/events", body, {"Content-Encoding": "gzip"})
    assert (status, answer["accepted"], answer["repeated"]) == (200, 2, 1)
    assert [item["index"] for item in answer["refused"]] == [3]
    assert api.events == [START, STEP]


def test_a_late_event_changes_nothing(api: ScriptedRbApi) -> None:
    for event in (STEP, {**STEP, "thought": "another"}):
        post(api, "/monitor/events", {"events": [event]})
    assert api.events == [STEP]


@pytest.mark.parametrize(
    ("outcomes", "kept"),
    [
        (("success", "failure: X"), "failure: X"),
        (("failure: X", "success"), "failure: X"),
        (("failure: X", "failure: Y"), "failure: X"),
        (("success", "success"), "success"),
    ],
)
def test_only_a_success_is_replaced(api: ScriptedRbApi, outcomes: tuple[str, str], kept: str) -> None:
    post(api, "/monitor/events", {"events": [finish(outcome) for outcome in outcomes]})
    assert [event["outcome"] for event in api.events] == [kept]


def test_the_end_of_a_run_that_is_only_a_reason_is_a_failure(api: ScriptedRbApi) -> None:
    ended = post(api, "/v1/monitor/runs/r/finish", {"outcome": "the tests still fail"})
    assert ended == (200, {"run_id": "r", "outcome": "failure: the tests still fail"})


@pytest.mark.parametrize("run_id", ["run-1", "../x", "a/b?c=d#e", "żółć run", "finish"])
def test_older_clients_send_events_one_by_one(api: ScriptedRbApi, run_id: str) -> None:
    path = f"/v1/monitor/runs/{quote(run_id, safe='')}"
    started = post(api, "/v1/monitor/runs", {"run_id": run_id, "task": "Fix it.", "codebase_id": None})
    stepped = post(api, f"{path}/steps", {"step_index": 0, "scores": {"loop": 0.5}, "monitors_fired": ["loop"]})
    ended = post(api, f"{path}/finish", {"outcome": "success"})
    assert started == (200, {"run_id": run_id})
    assert stepped == (200, {"scores": {"loop": 0.5}, "total_score": 0.0, "fired": ["loop"]})
    assert ended == (200, {"run_id": run_id, "outcome": "success"})
    _, listed = ask(api, "GET", "/v1/monitor/runs?limit=1")
    (run,) = listed["runs"]
    assert (run["run_id"], run["task"], run["steps"], run["outcome"]) == (run_id, "Fix it.", 1, "success")


@pytest.mark.parametrize("limit", ["0", "201", "-1", "many"])
def test_a_limit_has_bounds(api: ScriptedRbApi, limit: str) -> None:
    assert ask(api, "GET", f"/monitor/runs?limit={limit}")[0] == 422


COUNTS = {"reached": [1] * 7, "needless": [0] * 7, "checks": True}
SUMMARY = {"agent_name": "a b", "task_profile": "qa", "run_id": "r1", "summary": COUNTS}


def test_the_profile_of_an_agent_is_that_of_its_org() -> None:
    with ScriptedRbApi(keys={KEY: "acme", "rbk_other": "other"}) as api:
        assert post(api, "/monitor/agents/profile", SUMMARY) == (200, {"stored": True})
        assert post(api, "/v1/monitor/agents/profile", {**SUMMARY, "run_id": "r2"}) == (200, {"stored": True})
        asked = "/v1/monitor/agents/profile?agent_name=a%20b&task_profile=qa&but=r2"
        assert ask(api, "GET", asked) == (200, {"summaries": [COUNTS]})
        assert ask(api, "GET", asked, headers={"Authorization": "Bearer rbk_other"}) == (200, {"summaries": []})
        api.forget()
        assert ask(api, "GET", asked) == (200, {"summaries": []})


@pytest.mark.parametrize(
    "wrong",
    [{"agent_name": ""}, {"task_profile": None}, {"run_id": 5}, {"summary": {}}, {"summary": {"composite": 0.4}}],
)
def test_a_summary_that_is_none_is_refused(api: ScriptedRbApi, wrong: dict[str, Any]) -> None:
    assert post(api, "/monitor/agents/profile", {**SUMMARY, **wrong})[0] == 422


def test_forgotten_runs_are_gone(api: ScriptedRbApi) -> None:
    post(api, "/monitor/events", {"events": [STEP]})
    api.add_note("run-1", "Look at the clock.")
    api.forget()
    assert (api.events, api.notes) == ([], [])


# --- notes


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


@pytest.mark.parametrize("ids", [5, "note-1", [{}], [None], {"note-1": 1}])
def test_note_ids_that_are_none_tell_nothing(api: ScriptedRbApi, ids: Any) -> None:
    api.add_note("run-1", "Look at the clock.")
    post(api, "/monitor/events", {"events": [{**STEP, "metadata": {"note_ids": ids}}]})
    assert [item.told for item in api.notes] == [False]


# --- errors


@pytest.mark.parametrize("key", ["", "Bearer", "Bearer wrong", f"Basic {KEY}"])
def test_without_a_valid_key_nothing_is_answered(api: ScriptedRbApi, key: str) -> None:
    status, answer = post(api, "/monitors/evaluate", {"steps": []}, {"Authorization": key})
    assert (status, list(answer)) == (401, ["detail"])


def test_a_revoked_key_is_refused(api: ScriptedRbApi) -> None:
    api.revoke()
    assert post(api, "/monitors/evaluate", {"steps": []})[0] == 401


@pytest.mark.parametrize("path", ["/", "/v1", "/v2/monitors/evaluate", "/monitor/runs/x/y", "/monitor/runs//steps"])
def test_another_path_is_not_found(api: ScriptedRbApi, path: str) -> None:
    assert post(api, path, {})[0] == 404


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"steps": [], "weights": {"semantic_loop": NaN}}', 422),
        (b'{"steps": ' + b"[" * 100_000, 422),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(api: ScriptedRbApi, sent: bytes, status: int) -> None:
    got, answer = ask(api, "POST", "/monitors/evaluate", sent)
    assert (got, type(answer["detail"])) == (status, str)


def test_a_body_has_a_limit_and_so_has_its_content(api: ScriptedRbApi) -> None:
    bomb = gzip.compress(b" " * 9_000_000)
    assert ask(api, "POST", "/score", bomb, {"Content-Encoding": "gzip"})[0] == 413
    assert ask(api, "POST", "/score", b"no gzip", {"Content-Encoding": "gzip"})[0] == 400
    with connection(api) as client:
        client.putrequest("POST", "/score")
        client.putheader("Content-Length", "5000001")
        client.endheaders()
        assert client.getresponse().status == 413


# --- what is recorded


def test_a_request_is_recorded_with_its_bytes(api: ScriptedRbApi) -> None:
    with connection(api) as client:
        told(client, "POST", "/v1/score?x=1", b'{"text": "hello"}', {"X-Who": "a test"})
        (request,) = api.requests
    assert (request.method, request.path, request.query) == ("POST", "/score", {"x": "1"})
    assert request.body == {"text": "hello"}
    assert (request.headers["authorization"], request.headers["x-who"]) == (f"Bearer {KEY}", "a test")
    assert len(b'POST /v1/score?x=1 HTTP/1.1\r\n{"text": "hello"}') < request.up < 400
    assert (request.status, len(b'HTTP/1.1 200 OK\r\n{"difficulty":0.1}') < request.down < 200) == (200, True)


def test_a_connection_is_kept_for_the_next_request(api: ScriptedRbApi) -> None:
    with connection(api) as client:
        told(client, "GET", "/health")
        kept = client.sock
        told(client, "GET", "/health")
        assert client.sock is kept
    first, second = api.requests
    assert first.up == second.up


DIGITS = b"9" * 5_000
ODD_LENGTHS = [
    (b"Transfer-Encoding: chunked", 411),
    (b"Content-Length: 2\r\nTransfer-Encoding: chunked", 411),
    (b"Content-Length: 0\r\nContent-Length: 40", 400),
    (b"Content-Length: -1", 400),
    (b"Content-Length: " + DIGITS, 413),
]


@pytest.mark.parametrize(("lengths", "status"), ODD_LENGTHS, ids=lambda value: str(value)[:60])
def test_a_body_of_unknown_length_is_never_read_as_a_request(api: ScriptedRbApi, lengths: bytes, status: int) -> None:
    hidden = b"GET /health HTTP/1.1\r\n\r\n"
    with create_connection(("127.0.0.1", urlsplit(api.url).port or 0), 10.0) as client:
        client.sendall(b"POST /v1/score HTTP/1.1\r\n" + lengths + b"\r\n\r\n" + hidden)
        answers = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answers.startswith(b"HTTP/1.1 %d " % status)
    assert answers.count(b"HTTP/1.1 ") == len(api.requests) == 1


def test_a_limit_of_thousands_of_digits_is_refused(api: ScriptedRbApi) -> None:
    assert ask(api, "GET", f"/v1/monitor/runs?limit={DIGITS.decode()}")[0] == 422


def test_an_event_with_a_number_that_no_float_holds_is_refused_alone(api: ScriptedRbApi) -> None:
    status, answer = post(api, "/v1/monitor/events", {"events": [{**STEP, "timestamp": 10**400}, STEP]})
    assert (status, answer["accepted"], [one["index"] for one in answer["refused"]]) == (200, 1, [0])
