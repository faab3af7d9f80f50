"""Evaluations are those of the monitors for every client: with a sealed memory, or with all steps each time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.exceptions import ConfigError
from reasonblocks.wire import EvaluateRequest, EvaluateResponse
from reasonblocks_server._evaluations import CHUNK, INLINE_BYTES, INLINE_STEPS, PROFILES_S, Memories, OrgEvaluations
from reasonblocks_server.errors import ApiError
from reasonblocks_server.serving import Evaluations, Seal
from reasonblocks_server.storage import Storage
from tests.server.app.asking import LOOP, Body, evaluated, stepped, without
from tests.server.running import Running

SECRET = b"s" * 32
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    made = Storage.open(f"sqlite:///{tmp_path_factory.mktemp('evaluations') / 'server.db'}")
    made.migrate()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


def answer(evaluations: OrgEvaluations, body: Body, **options: Any) -> EvaluateResponse:
    request = EvaluateRequest.model_validate(body)
    return asyncio.run(evaluations.answer(request, **{"org": "acme", **options}))


# --- clients with a memory


def test_a_run_stepped_with_its_memory_is_that_of_all_steps_at_once(client: httpx.Client) -> None:
    last = stepped(client, 6)[-1]
    assert last["inject"]
    assert without(last, "memory") == without(evaluated(client, steps=[LOOP] * 6), "memory")


def test_forks_of_a_run_continue_with_the_memory_of_their_step(client: httpx.Client) -> None:
    memory = stepped(client, 3)[-1]["memory"]
    one = stepped(client, 3, memory, 3)
    other = stepped(client, 3, memory, 3)
    assert one == other
    assert not one[-1]["partial"]


def test_a_memory_of_another_org_is_not_opened(server: Running, client: httpx.Client) -> None:
    memory = stepped(client, 3)[-1]["memory"]
    with server.client(server.make_key(org="globex")) as other:
        assert evaluated(other, from_step=3, memory=memory)["partial"]
    assert not evaluated(client, from_step=3, memory=memory)["partial"]


def test_many_steps_at_once_are_evaluated_in_a_thread_with_the_same_result(client: httpx.Client) -> None:
    first = stepped(client, 2)[-1]["memory"]
    steps = [{**LOOP, "observation": f"{number} failed"} for number in range(INLINE_STEPS + 3)]
    at_once = evaluated(client, from_step=2, memory=first, steps=steps)
    memory: Any = first
    one: Body = {}
    for number, step in enumerate(steps, 2):
        one = evaluated(client, from_step=number, memory=memory, steps=[step])
        memory = one["memory"]
    assert at_once == one


def test_a_large_step_is_evaluated_in_a_thread_with_the_same_result(storage: Storage, pool: ThreadPoolExecutor) -> None:
    threads: list[int] = []

    class Watched(Evaluations):
        def answer(self, request: EvaluateRequest, **options: Any) -> EvaluateResponse:
            threads.append(threading.get_ident())
            return super().answer(request, **options)

    evaluations = OrgEvaluations(SECRET, storage, pool)
    evaluations._evaluations = Watched(Seal(SECRET))
    body = {"steps": [LOOP]}
    assert answer(evaluations, body, size=INLINE_BYTES + 1) == answer(evaluations, body, size=INLINE_BYTES)
    assert [one == threading.get_ident() for one in threads] == [False, True]


def test_evaluating_needs_the_scope(server: Running) -> None:
    with server.client(server.make_key("read", "ingest")) as client:
        assert client.post("/v1/monitors/evaluate", json={"steps": []}).status_code == 403


# --- clients that send all steps each time

TEXTS = st.sampled_from(["I run the tests.", "I read the file.", "It works now.", "Ошибка", ""])
STEPS = st.lists(
    st.fixed_dictionaries(
        {"thought": TEXTS},
        optional={
            "action": st.sampled_from(["run_tests", "read", None]),
            "action_input": st.sampled_from(['{"path": "a"}', "a", "{", None]),
            "observation": st.sampled_from(["3 failed", "ok", "Error: no such file", None]),
            "observation_is_error": st.none() | st.booleans(),
        },
    ),
    min_size=1,
    max_size=INLINE_STEPS + 4,
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "task_profile": st.sampled_from(["coding", "pr_review", "unknown"]),
        "weights": st.sampled_from([None, {"semantic_loop": 0.9}]),
        "task": st.sampled_from(["", "Fix it."]),
        "tool_roles": st.sampled_from([None, {"run_tests": "test"}]),
        "calibration": st.sampled_from([None, {"composite_fires": 0.2}]),
        "run_id": st.sampled_from(["", "run-1"]),
        "injected": st.sampled_from([[], [{"step": 1, "monitor": "semantic_loop"}]]),
    },
)


@unhurried
@given(
    steps=STEPS,
    given_settings=st.lists(SETTINGS, min_size=1, max_size=2),
    orgs=st.lists(st.sampled_from("ab"), min_size=2),
)
def test_answers_with_and_without_the_cache_are_equal(
    storage: Storage, pool: ThreadPoolExecutor, steps: list[Body], given_settings: list[Body], orgs: list[str]
) -> None:
    cached = OrgEvaluations(SECRET, storage, pool)
    plain = OrgEvaluations(SECRET, storage, pool, entries=0)
    for number in range(1, len(steps) + 1):
        body = {**given_settings[number % len(given_settings)], "steps": steps[:number]}
        org = orgs[number % len(orgs)]
        assert answer(cached, body, org=org) == answer(plain, body, org=org)


def test_a_run_sent_whole_each_time_costs_one_step(storage: Storage, pool: ThreadPoolExecutor) -> None:
    counting = Counting(SECRET, storage, pool)
    steps = [{**LOOP, "observation": f"{number} failed"} for number in range(3 * CHUNK)]
    for number in range(1, len(steps) + 1):
        answer(counting, {"steps": steps[:number]})
    assert counting.evaluated == len(steps)
    answer(counting, {"steps": steps})
    assert counting.evaluated == len(steps) + 1


def test_a_change_of_an_earlier_step_is_noticed(storage: Storage, pool: ThreadPoolExecutor) -> None:
    counting = Counting(SECRET, storage, pool)
    steps = [LOOP] * 4
    answer(counting, {"steps": steps})
    answer(counting, {"steps": [{**LOOP, "observation": "4 failed"}, *steps[1:], LOOP]})
    assert counting.evaluated == 4 + 5


def test_a_client_that_gives_up_finds_the_work_that_was_done(storage: Storage, pool: ThreadPoolExecutor) -> None:
    counting = Counting(SECRET, storage, pool)
    steps = [{**LOOP, "observation": f"{number} failed"} for number in range(5 * CHUNK)]
    counting.stop_after = 2 * CHUNK
    with pytest.raises(ApiError) as refused:
        answer(counting, {"steps": steps}, ends=time.monotonic() + 3_600)
    assert refused.value.status == 503
    assert counting.evaluated == 2 * CHUNK
    counting.stop_after = 10_000
    answer(counting, {"steps": steps})
    assert counting.evaluated == 5 * CHUNK


def test_a_request_whose_deadline_has_passed_is_not_evaluated(storage: Storage, pool: ThreadPoolExecutor) -> None:
    counting = Counting(SECRET, storage, pool)
    with pytest.raises(ApiError):
        answer(counting, {"steps": [LOOP] * 100}, ends=time.monotonic() - 1)
    assert counting.evaluated == 0


class Counting(OrgEvaluations):
    """Counts the evaluated steps, and ends the deadline after a number of them."""

    def __init__(self, secret: bytes, storage: Storage, pool: ThreadPoolExecutor) -> None:
        super().__init__(secret, storage, pool)
        self.evaluated, self.stop_after = 0, 10_000
        count = self

        class Counted(Evaluations):
            def answer(self, request: EvaluateRequest, **options: Any) -> EvaluateResponse:
                if count.evaluated >= count.stop_after:
                    raise ApiError(503, "the deadline")
                count.evaluated += len(request.steps)
                return super().answer(request, **options)

        self._evaluations = Counted(Seal(secret))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3_000)), max_size=60))
def test_the_cache_keeps_its_bounds_and_the_newest(puts: list[tuple[int, int]]) -> None:
    cache = Memories(entries=4, size=8_000)
    last = b""
    for key, size in puts:
        cache.put(last := bytes([key]), {"memories": "x" * size})
        kept = [found for number in range(10) if (found := cache.get(bytes([number])))]
        assert len(kept) <= 4
        assert sum(len(found["memories"]) for found in kept) <= 8_000
    assert not puts or cache.get(last) is not None


# --- the settings of the org


@pytest.fixture
def evaluations(storage: Storage, pool: ThreadPoolExecutor) -> OrgEvaluations:
    return OrgEvaluations(SECRET, storage, pool)


def test_the_org_s_profile_applies_where_a_request_gives_nothing(storage: Storage, evaluations: OrgEvaluations) -> None:
    weights, calibration = {"semantic_loop": 1.0}, {"composite_fires": 0.05}
    storage.profiles.put("acme", "support", weights, calibration, revision=None)
    steps = {"steps": [LOOP] * 4}
    by_name = answer(evaluations, {"task_profile": "support", **steps})
    given_too = answer(evaluations, {"task_profile": "coding", "weights": weights, "calibration": calibration, **steps})
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


def test_a_changed_profile_is_used_within_its_time_in_the_cache(storage: Storage, pool: ThreadPoolExecutor) -> None:
    now = [100.0]
    evaluations = OrgEvaluations(SECRET, storage, pool, clock=lambda: now[0])

    def composite() -> float:
        return answer(evaluations, {"task_profile": "changed", "steps": [LOOP] * 4}, org="changing").composite

    storage.profiles.put("changing", "changed", {"semantic_loop": 1.0}, None, revision=None)
    before = composite()
    storage.profiles.put("changing", "changed", {"semantic_loop": 0.0}, None, revision=1)
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


def test_a_sealed_memory_survives_json_libraries_that_write_other_text(client: httpx.Client) -> None:
    memory = stepped(client, 2)[-1]["memory"]
    again = json.loads(json.dumps(dict(reversed(memory.items())), indent=3, ensure_ascii=True))
    assert not evaluated(client, from_step=2, memory=again)["partial"]
