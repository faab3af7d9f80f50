"""Clients of a server that is killed and restarted: one that sends events, and an agent that the server evaluates."""

from __future__ import annotations

import http.client
from typing import Any

from reasonblocks import ReasonBlocks, SteeringSession, Step, StepInput, StepOutcome, ToolCall, ToolResult
from tests.server.serving import Served

BATCHES, BATCH = 40, 5
STEPS = 12


def step_event(run_id: str, index: int) -> dict[str, Any]:
    return {
        "event": "step", "timestamp": 2.0 + index, "run_id": run_id, "step_index": index, "thought": f"thought {index}",
        "action": "look", "observation": "nothing", "metadata": {"fsm_state": "NORMAL"},
    }  # fmt: skip


def send(server: Served, run_id: str, number: int) -> int:
    """Send one batch until it is acknowledged, as a sink does. Return the events that the server had already."""
    batch = [step_event(run_id, number * BATCH + index) for index in range(BATCH)]
    while True:
        try:
            status, answer = server.ask("/monitor/events", {"events": batch})
        except (OSError, http.client.HTTPException):
            continue  # the worker was killed with the request in its hands
        if status == 200:
            assert answer["refused"] == []
            assert answer["accepted"] + answer["repeated"] == BATCH
            return int(answer["repeated"])


def stream_all(server: Served, run_id: str) -> None:
    """Send all batches of a run."""
    for number in range(BATCHES):
        send(server, run_id, number)


def take(session: SteeringSession, number: int, completed: Step | None) -> Step:
    """Take one step of a run that repeats itself, so that the monitors need the steps before it."""
    decision = session.begin_step(StepInput(completed=completed, default_model="some-model"))
    session.end_step(decision, StepOutcome(model="some-model", text="I run the tests again."))
    call = ToolCall(id=f"call-{number}", name="run_tests", arguments={"verbose": number % 3 == 0})
    result = ToolResult(call_id=call.id, output="3 failed: test_a, test_b, test_c")
    return Step(thought="I run the tests again.", tool_calls=(call,), tool_results=(result,))


def decided(session: SteeringSession) -> list[Any]:
    """Return what was decided at each step."""
    return [
        (
            entry.step,
            entry.fsm_state,
            entry.difficulty,
            entry.monitors_fired,
            entry.gate_decision,
            entry.intervention_texts,
        )
        for entry in session.step_log
    ]


def alone() -> list[Any]:
    """Return the decisions of the same run without a server."""
    with ReasonBlocks(base_url="", strict=True) as rb, rb.session(run_id="alone", task="Fix the tests.") as session:
        completed = None
        for number in range(STEPS):
            completed = take(session, number, completed)
        assert [entry for entry in session.step_log if entry.monitors_fired]
        return decided(session)


def client(server: Served) -> ReasonBlocks:
    assert server.key is not None
    return ReasonBlocks(base_url=server.url, api_key=server.key, step_deadline_ms=60_000, strict=True)


def indices(server: Served, run_id: str) -> list[int]:
    """Return the step indices of a stored run."""
    status, found = server.ask(f"/monitor/runs/{run_id}?limit=500")
    assert status == 200, found
    return [step["step_index"] for step in found["steps"]]
