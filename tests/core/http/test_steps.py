"""Steps that a server evaluates: the requests, the account that travels, and the same decisions as embedded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from reasonblocks import LocalStore, Pattern, ReasonBlocks
from reasonblocks.types import JSON, RunInfo, Step, StepDecision
from reasonblocks_testing.rb_api import ScriptedRbApi
from tests.core.http.world import EVALUATE, RETRIEVE, answered, arun, at, client, given, run

CALLS = 12


class Counts:
    """A monitor of the caller's that counts steps in its memory."""

    name, failure_type = "counts", "counting"

    def __init__(self) -> None:
        self.seen: list[JSON] = []

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]:
        self.seen.append(memory)
        return 0.7, (memory or 0) + 1, ()  # type: ignore[operator]  # the number of the step before


def told(decisions: list[StepDecision]) -> list[Any]:
    return [
        (decision.scores, decision.composite, decision.monitors_fired, decision.gate_decision, decision.guidance)
        for decision in decisions
    ]


def embedded(**options: Any) -> list[StepDecision]:
    rb = ReasonBlocks(e_traces_enabled=False, step_deadline_ms=20_000, **options)
    return run(rb.session(run_id="r", task="Fix it."), CALLS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": {"semantic_loop": 0.9}},
        {"tool_roles": {"bash": "test"}, "task_profile": "qa"},
        {"patience": "2 of 3", "mode": "observe"},
    ],
)
def test_a_server_decides_as_the_embedded_client_does(api: ScriptedRbApi, options: dict[str, Any]) -> None:
    rb = client(api, strict=True, **options)
    decided = run(rb.session(run_id="r", task="Fix it."), CALLS)
    assert told(decided) == told(embedded(**options))
    assert any(decision.injections or decision.withheld for decision in decided)


def test_both_faces_ask_and_decide_alike(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    sync = run(rb.session(run_id="r"), CALLS)
    bodies = [received.body for received in at(api, EVALUATE)]
    apart = asyncio.run(arun(rb.session(run_id="r"), CALLS))
    assert told(apart) == told(sync)
    assert [received.body for received in at(api, EVALUATE)][len(bodies) :] == bodies


def test_each_request_has_one_step_and_the_account_up_to_it(api: ScriptedRbApi) -> None:
    run(client(api).session(run_id="r", task="Fix it."), 5)
    bodies = [received.body for received in at(api, EVALUATE)]
    assert [(body["from_step"], len(body["steps"])) for body in bodies] == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert [(body["account"]["steps"], body["account"]["letters"]) for body in bodies] == [
        (1, "."), (2, ".A"), (3, ".AA"), (4, ".AAA"),
    ]  # fmt: skip
    assert bodies[-1]["task"] == "Fix it."
    assert bodies[-1]["steps"][0]["tool_calls"][0]["arguments"] == {"command": "pytest", "timeout": None}


def test_only_given_settings_are_sent(api: ScriptedRbApi) -> None:
    run(client(api).session(), 2)
    run(client(api, weights={"semantic_loop": 1}, tool_roles={"bash": "test"}).session(), 2)
    plain, own = [received.body for received in at(api, EVALUATE)]
    assert {"weights", "tool_roles"} & plain.keys() == set()
    assert (own["weights"], own["tool_roles"]) == ({"semantic_loop": 1}, {"bash": "test"})


def test_a_monitor_of_the_callers_keeps_its_memory_here(api: ScriptedRbApi) -> None:
    watcher = Counts()
    session = client(api, monitors=[watcher], weights={"counts": 0.5}, strict=True).session(run_id="r")
    decided = run(session, 4)
    assert watcher.seen == [None, 1, 2]
    assert decided[-1].scores["counts"] == 0.7
    sent = at(api, EVALUATE)[-1].body
    assert sent["observed"] == [{"name": "counts", "score": 0.7, "evidence": [], "failure_type": "counting"}]
    assert sent["sightings"].keys() == {"shown", "uses", "used", "last", "after"}


def test_a_restored_run_continues_exactly(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    whole = run(rb.session(run_id="r"), CALLS)
    first = rb.session(run_id="r")
    begun = run(first, 6)
    kept = json.loads(json.dumps(first.trace.snapshot()))
    api.restart()
    rest = run(rb.session(run_id="r", snapshot=kept), CALLS - 6, start=6)
    assert told([*begun, *rest]) == told(whole)


def test_two_forks_of_a_run_have_an_account_each(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    first = rb.session(run_id="r")
    run(first, 4)
    kept = first.trace.snapshot()
    left = run(rb.session(run_id="r", snapshot=kept), 4, start=4)
    right = run(rb.session(run_id="r", snapshot=kept), 4, start=4)
    assert told(left) == told(right)


def test_the_servers_patterns_are_found() -> None:
    lesson = Pattern(id="a", tier="e3", fields={"instruction": "Read the first error."})
    with ScriptedRbApi(patterns=[lesson]) as api:
        decided = run(client(api, e_traces_enabled=True, strict=True).session(task="I run the tests."), 3)
        assert ("a" in (decided[0].retrieved["e3"] or ()), "Read the first error." in decided[0].guidance) == (
            True,
            True,
        )
        assert at(api, RETRIEVE)[-1].body["texts"] == ["I run the tests."] * 2


def test_a_pattern_store_of_the_callers_takes_precedence(api: ScriptedRbApi) -> None:
    run(client(api, e_traces_enabled=True, pattern_store=LocalStore()).session(), 3)
    assert at(api, RETRIEVE) == []


def test_a_disabled_client_sends_nothing(api: ScriptedRbApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    rb = client(api, live_streaming_enabled=True)
    run(rb.session(), 3)
    rb.close()
    assert api.requests == []


def test_several_event_loops_share_one_connection(api: ScriptedRbApi) -> None:
    rb = client(api, strict=True)
    session = rb.session(run_id="r")
    for number in range(4):
        decision = asyncio.run(session.abegin_step(given(number)))
        session.end_step(decision, answered(number))
    assert [received.status for received in at(api, EVALUATE)] == [200] * 3


def test_requests_leave_no_line_in_a_programs_log(api: ScriptedRbApi, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    run(client(api).session(), 3)
    assert caplog.records == []
