"""Clients that existed before this server send flat steps, all of them each time, to routes without a version."""

from __future__ import annotations

import httpx

from tests.server.app.asking import LOOP, Body

FIELDS = {
    "inject", "intervention_text", "failure_type", "injection_path", "intervention_source", "fired", "pattern_id",
    "scores", "composite",
}  # fmt: skip
"""The fields of an answer that these clients read."""


def test_a_run_that_is_sent_whole_each_time_is_steered_and_stored(client: httpx.Client) -> None:
    run_id, steps = "older/run 1", list[Body]()
    start: Body = {
        "run_id": run_id, "agent_name": "bugfixer", "task": "Fix the tests.", "model": "some-model",
        "framework": "langchain", "codebase_id": None, "org_id": "default", "project_id": "default",
        "task_profile": "coding", "metadata": {},
    }  # fmt: skip
    assert client.post("/monitor/runs", json=start).json() == {"run_id": run_id}
    answers: list[Body] = []
    path = "/monitor/runs/older%2Frun%201"
    for number in range(10):
        steps.append({**LOOP, "observation": f"{number} failed"} if number < 3 else LOOP)
        body = {"model": "some-model", "task_profile": "coding", "steps": steps, "unknown": {"field": 1}}
        answer = client.post("/monitors/evaluate", json=body).raise_for_status().json()
        assert {*answer} >= FIELDS
        answers.append(answer)
        told = {
            "step_index": number, "action": LOOP["action"], "action_input": None, "thought": LOOP["thought"],
            "observation": LOOP["observation"], "is_error": None, "tokens": 120, "input_tokens": 100,
            "output_tokens": 20, "cache_read_tokens": None, "step_model": "some-model", "injections": [],
            "injection_sources": [], "intervention_texts": [], "monitors_fired": answer["fired"],
            "failure_type": answer["failure_type"], "metadata": {"fsm_state": "NORMAL", "difficulty": 0.2},
        }  # fmt: skip
        stored = client.post(f"{path}/steps", json=told).raise_for_status().json()
        assert stored["fired"] == answer["fired"]
    outcome = {"outcome": "failure: ValueError"}
    assert client.post(f"{path}/finish", json=outcome).json() == {"run_id": run_id, **outcome}
    assert [answer["inject"] for answer in answers].count(True) >= 2
    run = client.get(path).json()
    assert (run["run"]["outcome"], run["run"]["agent_name"], len(run["steps"])) == (outcome["outcome"], "bugfixer", 10)


def test_an_empty_run_and_an_unknown_field_are_no_errors(client: httpx.Client) -> None:
    answer = client.post("/monitors/evaluate", json={"steps": [], "future": True}).json()
    assert not answer["inject"]
    assert answer["scores"] == {}
