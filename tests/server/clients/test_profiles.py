"""Clients of a real server share the profiles of agents, and are as patient as one client with all runs."""

from __future__ import annotations

from typing import Any

from reasonblocks import LocalStore, ReasonBlocks
from tests.core.http.world import PATIENT_MS, run
from tests.server.running import Running

TIMED = ("timestamp", "overhead_ms")


def client(server: Running, key: str, **options: Any) -> ReasonBlocks:
    given: dict[str, Any] = {"base_url": server.url, "api_key": key, "live_streaming_enabled": False}
    return ReasonBlocks(**given, e_traces_enabled=False, strict=True, step_deadline_ms=PATIENT_MS, **options)


def log_of(rb: ReasonBlocks, number: int, **options: Any) -> list[dict[str, Any]]:
    """Make a run, and return its log without times."""
    with rb.session(agent_name="clerk", run_id=f"run-{number}", **options) as session:
        run(session, 20 + number)
    entries = [entry.as_dict() for entry in session.step_log]
    return [{name: value for name, value in entry.items() if name not in TIMED} for entry in entries]


def test_the_decisions_are_those_of_one_client_with_all_runs(server: Running) -> None:
    key = server.make_key(org="levels")
    alone = ReasonBlocks(strict=True, pattern_store=LocalStore(), e_traces_enabled=False, step_deadline_ms=PATIENT_MS)
    judged = []
    for number in range(5):
        with client(server, key) as rb:
            mode = "observe" if number < 3 else None
            here, there = log_of(alone, number, mode=mode), log_of(rb, number, mode=mode)
        assert here == there, number
        judged.append(there[0]["judged_by"])
    assert judged == [*["shipped"] * 2, *[f"own: 2 of 3, {runs} runs" for runs in (2, 3, 4)]]
