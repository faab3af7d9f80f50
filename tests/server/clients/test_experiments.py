"""Runs of an experiment reach a real server, which compares their arms."""

from __future__ import annotations

from typing import Any

from reasonblocks import HttpSink, ReasonBlocks
from reasonblocks.options.run import Assignment
from reasonblocks.types import StepInput, StepOutcome, Usage
from tests.server.running import Running

USERS = 90


def agent(rb: ReasonBlocks, user: str, *, succeeds: bool) -> None:
    session = rb.session(experiment_id="lessons", unit_id=user, agent_name="clerk")
    for number in range(2):
        decision = session.begin_step(StepInput(key=str(number)))
        session.end_step(decision, StepOutcome(text="Done.", usage=Usage(input=90, output=10)))
    if not succeeds:
        session.mark_failure("the customer wrote again")
    session.finish()


def report(server: Running, key: str, experiment: str = "lessons") -> tuple[int, dict[str, Any]]:
    with server.client(key) as http:
        answer = http.get(f"/v1/monitor/experiments/{experiment}/report")
        return answer.status_code, answer.json()


def test_a_server_compares_the_arms_that_clients_have_assigned(server: Running) -> None:
    """Steered runs succeed, and observed ones fail; each user has one run but the first, who has three."""
    key = server.make_key(org="arms")
    users = [f"user-{number}" for number in range(USERS)]
    arms = {user: Assignment(experiment_id="lessons", unit_id=user, on_fraction=0.5).arm for user in users}
    with ReasonBlocks(sinks=[HttpSink(server.url, key)], step_deadline_ms=20_000, strict=True) as rb:
        for user in (*users, users[0], users[0]):
            agent(rb, user, succeeds=arms[user] == "on")
    status, found = report(server, key)
    on = sum(arm == "on" for arm in arms.values())
    assert (status, found["verdict"], found["experiment_id"]) == (200, "better", "lessons")
    assert (found["on"]["known"], found["off"]["known"]) == (on, USERS - on)
    assert found["on"]["runs"] + found["off"]["runs"] == USERS + 2
    assert (found["on"]["success"]["value"], found["off"]["success"]["value"]) == (1.0, 0.0)
    assert (found["on"]["steps"], found["on"]["tokens"], found["on_fraction"]) == (2.0, 200.0, 0.5)
    assert (found["in_both_arms"], found["left_out"], found["broken"]) == (0, 0, [])


def test_a_client_that_observes_is_left_out(server: Running) -> None:
    key = server.make_key(org="observers")
    with ReasonBlocks(sinks=[HttpSink(server.url, key)], step_deadline_ms=20_000, mode="observe") as rb:
        agent(rb, "user-1", succeeds=True)
    status, found = report(server, key)
    assert (status, found["verdict"], found["left_out"]) == (200, "not enough data", 1)
