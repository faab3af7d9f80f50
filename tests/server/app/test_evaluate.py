"""Evaluations are those of the monitors for every client: with the account of the run, or with all steps each time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks.wire import EvaluateRequest, EvaluateResponse
from reasonblocks_server._evaluations import INLINE_BYTES, INLINE_STEPS, PROFILES_S, OrgEvaluations
from reasonblocks_server._shares import SharedPool
from reasonblocks_server.errors import ApiError
from reasonblocks_server.serving import Evaluations
from reasonblocks_server.storage import Storage
from tests.server.app.asking import LOOP, Body, evaluated, stepped
from tests.server.running import Running, stored


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with stored(tmp_path_factory.mktemp("evaluations")) as made:
        yield made


@pytest.fixture(scope="module")
def pool() -> Iterator[SharedPool]:
    found = SharedPool("test", 2, 2)
    yield found
    found.close()


def answer(evaluations: OrgEvaluations, body: Body, **options: Any) -> EvaluateResponse:
    request = EvaluateRequest.model_validate(body)
    return asyncio.run(evaluations.answer(request, **{"org": "acme", **options}))


# --- clients with an account


def test_a_run_stepped_with_its_account_is_that_of_all_steps_at_once(client: httpx.Client) -> None:
    last = stepped(client, 6)[-1]
    assert (last["inject"], last["partial"]) == (True, False)
    assert last == evaluated(client, steps=[LOOP] * 6)


def test_an_account_that_no_run_has_is_refused_by_name(client: httpx.Client) -> None:
    for account, named in (({"letters": "?"}, "letters"), ({"actions": [[1]]}, "actions.0"), ({"items": "?"}, "items")):
        answer = client.post("/v1/monitors/evaluate", json={"steps": [LOOP], "account": account})
        assert (answer.status_code, f"account.{named}" in answer.json()["detail"]) == (422, True), answer.text


def test_an_account_goes_with_the_newest_step_alone(client: httpx.Client) -> None:
    answer = client.post("/v1/monitors/evaluate", json={"steps": [LOOP] * 2, "account": {}})
    assert (answer.status_code, answer.json()["detail"]) == (
        422, "steps='2 steps': must have the newest one alone, with an account",
    )  # fmt: skip


def test_a_large_step_is_evaluated_in_a_thread_with_the_same_result(storage: Storage, pool: SharedPool) -> None:
    threads: list[int] = []

    class Watched(Evaluations):
        def answer(self, request: EvaluateRequest, **options: Any) -> EvaluateResponse:
            threads.append(threading.get_ident())
            return super().answer(request, **options)

    evaluations = OrgEvaluations(storage, pool)
    evaluations._evaluations = Watched()
    body = {"steps": [LOOP]}
    assert answer(evaluations, body, size=INLINE_BYTES + 1) == answer(evaluations, body, size=INLINE_BYTES)
    assert [one == threading.get_ident() for one in threads] == [False, True]


# --- clients that send all steps each time


def test_many_steps_at_once_are_evaluated_in_a_thread_with_the_same_result(client: httpx.Client) -> None:
    steps = [{**LOOP, "observation": f"{number} failed"} for number in range(INLINE_STEPS)] + [LOOP] * 5
    assert evaluated(client, steps=steps) == stepped(client, len(steps), steps)[-1]


def test_a_request_whose_deadline_passes_is_given_up(storage: Storage, pool: SharedPool) -> None:
    evaluations = OrgEvaluations(storage, pool)
    steps = [{**LOOP, "observation": f"{number} failed"} for number in range(10_000)]
    begun = time.monotonic()
    with pytest.raises(ApiError) as refused:
        answer(evaluations, {"steps": steps}, ends=begun + 0.1)
    assert refused.value.status == 503
    assert answer(evaluations, {"steps": steps[:100]}, ends=begun + 3_600).scores


# --- the settings of the org


@pytest.fixture
def evaluations(storage: Storage, pool: SharedPool) -> OrgEvaluations:
    return OrgEvaluations(storage, pool)


def test_the_org_s_profile_applies_where_a_request_gives_nothing(storage: Storage, evaluations: OrgEvaluations) -> None:
    weights = {"semantic_loop": 1.0}
    storage.profiles.put("acme", "support", weights, revision=None)
    steps = {"steps": [LOOP] * 4}
    by_name = answer(evaluations, {"task_profile": "support", **steps})
    given_too = answer(evaluations, {"task_profile": "coding", "weights": weights, **steps})
    assert by_name.composite == given_too.composite
    assert by_name.fired == given_too.fired
    own = answer(evaluations, {"task_profile": "support", "weights": {"semantic_loop": 0.1}, **steps})
    assert own.composite < by_name.composite
    other_org = answer(evaluations, {"task_profile": "support", **steps}, org="globex")
    assert other_org.composite == answer(evaluations, {**steps}, org="globex").composite


def test_an_unknown_profile_is_judged_as_coding_and_logged_once(
    evaluations: OrgEvaluations, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"steps": [LOOP] * 3}
    odd = answer(evaluations, {"task_profile": "nobody's", **body})
    assert answer(evaluations, {"task_profile": "nobody's", **body}) == odd
    assert odd.scores == answer(evaluations, {"task_profile": "coding", **body}).scores
    assert [record.getMessage().count("nobody's") for record in caplog.records] == [1]


def test_a_changed_profile_is_used_within_its_time_in_the_cache(storage: Storage, pool: SharedPool) -> None:
    now = [100.0]
    evaluations = OrgEvaluations(storage, pool, clock=lambda: now[0])

    def composite() -> float:
        return answer(evaluations, {"task_profile": "changed", "steps": [LOOP] * 4}, org="changing").composite

    storage.profiles.put("changing", "changed", {"semantic_loop": 1.0}, revision=None)
    before = composite()
    storage.profiles.put("changing", "changed", {"semantic_loop": 0.0}, revision=1)
    assert composite() == before
    now[0] += PROFILES_S + 1
    assert composite() < before


# --- the rest of the path


def test_an_invalid_field_is_named(client: httpx.Client, evaluations: OrgEvaluations) -> None:
    answer = client.post("/v1/monitors/evaluate", json={"steps": [LOOP], "weights": {"nothing": 1}})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("weights='nothing'")
    with pytest.raises(ConfigError):
        asyncio.run(evaluations.answer(EvaluateRequest(steps=[], weights={"nothing": 1}, run_id="x" * 300), org="acme"))


def test_lessons_and_scores_are_answered(client: httpx.Client) -> None:
    found = client.post("/v1/traces/retrieve", json={"context": "", "level": "e3", "top_k": 50}).json()["traces"]
    assert found
    assert {trace["tier"] for trace in found} == {"e3"}
    fields = "tier level similarity pattern_id fields failure_type model_family source_trace_id".split()
    assert {*fields} <= {*found[0]}
    assert "instruction" in found[0]["fields"]
    assert 0 <= client.post("/v1/score", json={"text": "I am stuck."}).json()["difficulty"] <= 1


def test_a_search_whose_deadline_has_passed_is_given_up(client: httpx.Client) -> None:
    headers = {"Reasonblocks-Deadline-Ms": "0"}
    answer = client.post("/v1/traces/retrieve", json={"context": "x", "tier": "e2"}, headers=headers)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"


def test_an_operator_s_note_waits_in_the_answers_until_it_was_told(server: Running, client: httpx.Client) -> None:
    run_id = "noted/run 1"
    start = {"run_id": run_id, "agent_name": "a", "task": "t", "model": "m", "timestamp": time.time()}
    client.post("/v1/monitor/runs", json=start).raise_for_status()
    assert evaluated(client, run_id=run_id, notes=True)["notes"] == []
    server.server.takers.settle(20)
    path = "/v1/runs/noted%2Frun%201/notes"
    note = client.post(path, json={"text": "Stop the deployment."})
    assert note.status_code == 201, note.text
    waiting = evaluated(client, run_id=run_id, notes=True)["notes"]
    assert waiting == [{"id": note.json()["note_id"], "text": "Stop the deployment."}]
    assert evaluated(client, run_id=run_id, notes=True)["notes"] == waiting
    assert evaluated(client, run_id=run_id, notes=False)["notes"] == []
    assert evaluated(client, run_id="another", notes=True)["notes"] == []
    assert evaluated(client, run_id=run_id, notes=True, notes_told=[waiting[0]["id"]])["notes"] == []


def test_an_answer_has_all_fields_of_the_wire(client: httpx.Client) -> None:
    assert {*evaluated(client)} == {*EvaluateResponse.model_fields}
