"""All clients of a server share the profiles of their agents, and are as patient as one client with all runs."""

from __future__ import annotations

import json
import logging
import time
from random import Random
from typing import Any

import pytest

from reasonblocks import HttpSink, LocalStore, ReasonBlocks, SteeringSession
from reasonblocks.backends.http import Exchange, Reply, address_of
from reasonblocks.backends.http.profiles import PATH, HttpProfiles, summaries_in
from reasonblocks.backends.profiles import ProfileMemory
from reasonblocks.exceptions import BadAnswer, Unavailable
from reasonblocks.monitors.profile import MAX_RUNS
from reasonblocks.util.secret import Secret
from reasonblocks_testing.rb_api import ScriptedRbApi, Slow, Status
from tests.core.http.world import PATIENT_MS, SHORT_MS, at, client, run

AGENT = ("default", "clerk", "coding")
HALF = 20
"""Calls of an observed run that does the same again and again, of which two are enough to learn from."""
LEARNED = "own: 2 of 3, 2 runs"


def summary(number: int) -> dict[str, Any]:
    return {"reached": [number] * 7, "needless": [0] * 7, "checks": True}


def summaries(body: object) -> tuple[Any, ...]:
    return summaries_in(Reply(status=200, body=json.dumps(body).encode()), "the server")


def finished(rb: ReasonBlocks, runs: int, *, calls: int = 2, agent_name: str = "clerk", **options: Any) -> None:
    for _ in range(runs):
        with rb.session(agent_name=agent_name, **options) as session:
            run(session, calls)


def begun(rb: ReasonBlocks, calls: int = 1, **options: Any) -> SteeringSession:
    session = rb.session(**{"agent_name": "clerk", **options})
    run(session, calls)
    return session


def test_runs_of_every_client_count(api: ScriptedRbApi) -> None:
    for _ in range(2):
        assert begun(client(api, strict=True)).step_log[0].judged_by == "shipped"
        with client(api, strict=True) as rb:
            finished(rb, 1, calls=HALF, mode="observe")
    assert begun(client(api, strict=True)).step_log[0].judged_by == LEARNED


def test_the_decisions_are_those_of_one_client_with_all_runs(api: ScriptedRbApi) -> None:
    """The same runs, shared by several clients, and in the memory of one."""
    alone = ReasonBlocks(strict=True, pattern_store=LocalStore(), e_traces_enabled=False, step_deadline_ms=PATIENT_MS)
    logs: list[list[dict[str, Any]]] = []
    for number in range(7):
        several = client(api, strict=True)
        for rb in (alone, several):
            with rb.session(
                agent_name="clerk", run_id=f"run-{number}", mode="observe" if number < 4 else None
            ) as session:
                run(session, HALF - 4 + number)
            logs.append([entry.as_dict() for entry in session.step_log])
        several.close()
    timed = ("timestamp", "overhead_ms")
    plain = [[{name: entry[name] for name in entry if name not in timed} for entry in log] for log in logs]
    assert plain[::2] == plain[1::2]
    assert [log[0]["judged_by"].split(",")[0] for log in plain[::2]] == ["shipped"] * 2 + ["own: 2 of 3"] * 5


def test_a_server_answers_as_a_memory_does(api: ScriptedRbApi) -> None:
    dice, memory = Random(3), ProfileMemory()
    exchange = Exchange(address_of("base_url", api.url, Secret(api.key)))
    shared = HttpProfiles(exchange, "default", 20.0, ProfileMemory())
    agents = [AGENT, ("default", "a b/c?&ü", "coding"), ("default", "clerk", "qa")]
    for number in range(60):
        agent, run_id = dice.choice(agents), str(dice.randrange(20))
        if number % 3:
            shared.add(agent, run_id, summary(number))
            memory.add(agent, run_id, summary(number))
        assert shared.read(agent, run_id) == memory.read(agent, run_id)
    exchange.close()


def test_a_request_has_only_names_and_counts(api: ScriptedRbApi) -> None:
    with client(api, strict=True) as rb:
        finished(rb, 1, run_id="a secret run", task="a secret task")
    read, added = at(api, PATH)
    assert sorted(read.query) == ["agent_name", "but", "task_profile"]
    assert sorted(added.body) == ["agent_name", "run_id", "summary", "task_profile"]
    assert added.body["summary"] == {"reached": [0] * 7, "needless": [0] * 7, "checks": True}
    assert "secret" not in json.dumps([dict(read.query), added.body])


@pytest.mark.parametrize("options", [{"profile": "memory"}, {"profile": None}])
def test_a_client_with_a_profile_of_its_own_asks_for_none(api: ScriptedRbApi, options: dict[str, Any]) -> None:
    with client(api, strict=True, **options) as rb:
        finished(rb, 1)
    assert at(api, PATH) == []


def test_a_client_that_only_sends_events_asks_for_none(api: ScriptedRbApi) -> None:
    with ReasonBlocks(sinks=[HttpSink(api.url, api.key)], step_deadline_ms=PATIENT_MS) as rb:
        finished(rb, 1)
    assert api.events
    assert at(api, PATH) == []


def test_the_profile_of_another_org_stays_in_this_client(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    finished(rb, 2, calls=HALF, mode="observe", org_id="other")
    assert begun(rb, org_id="other").step_log[0].judged_by == LEARNED
    assert begun(client(api, strict=True), org_id="other").step_log[0].judged_by == "shipped"
    assert at(api, PATH) == []


def test_an_agent_without_a_name_has_no_profile(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    finished(rb, 2, calls=HALF, mode="observe", agent_name="")
    assert begun(rb, agent_name="").step_log[0].judged_by == "shipped"
    assert at(api, PATH) == []


def test_a_server_without_profiles_is_asked_once(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=404), at=PATH)
    rb = client(api, strict=True)
    finished(rb, 2, calls=HALF, mode="observe")
    assert begun(rb).step_log[0].judged_by == LEARNED
    assert len(at(api, PATH)) == 1


@pytest.mark.parametrize("status", [401, 403, 422, 429, 500, 503])
def test_a_refusal_leaves_the_default_patience_and_the_evaluations(
    api: ScriptedRbApi, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    api.misbehave(Status(code=status), at=PATH)
    rb = client(api, strict=True)
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        finished(rb, 4)
        session = begun(rb, calls=3)
    assert {entry.judged_by for entry in session.step_log} == {"shipped"}
    assert all(entry.gate_decision != "unavailable" for entry in session.step_log)
    assert [f"HTTP {status}" in record.getMessage() for record in caplog.records] == [True]


def test_a_slow_server_costs_the_first_step_half_of_its_time_at_most(api: ScriptedRbApi) -> None:
    api.misbehave(Slow(seconds=30), at=PATH)
    session = client(api, step_deadline_ms=2 * SHORT_MS).session(agent_name="clerk")
    begun_at = time.monotonic()
    run(session, 1)
    assert 0.9 * SHORT_MS / 1000 < time.monotonic() - begun_at < 3
    api.behave()


def test_a_request_ends_by_itself(api: ScriptedRbApi) -> None:
    api.misbehave(Slow(seconds=30), at=PATH)
    exchange = Exchange(address_of("base_url", api.url, Secret(api.key)))
    begun_at = time.monotonic()
    with pytest.raises(Unavailable, match="no answer within"):
        HttpProfiles(exchange, "default", SHORT_MS / 1000, ProfileMemory()).read(AGENT, "")
    assert time.monotonic() - begun_at < 5
    api.behave()
    exchange.close()


@pytest.mark.parametrize(
    "body",
    [{}, {"summaries": None}, {"summaries": {}}, {"summaries": [summary(1)] * (MAX_RUNS + 1)}],
)
def test_an_answer_that_is_no_profile_is_not_believed(body: object) -> None:
    with pytest.raises(BadAnswer):
        summaries(body)


def test_damaged_summaries_are_passed_over() -> None:
    kept = [
        summary(1), None, {}, {"composite": 0.2}, {**summary(2), "reached": [1]}, {**summary(2), "needless": ["1"] * 7},
        {**summary(2), "checks": 1}, {**summary(3), "newer": 9},
    ]  # fmt: skip
    assert summaries({"summaries": kept}) == (summary(1), summary(3))
