"""Clients of a real server share the profiles of agents, and judge as one client with all runs would."""

from __future__ import annotations

from typing import Any

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.engine.own_level import MIN_RUNS
from tests.core.http.world import PATIENT_MS, run
from tests.server.running import Running

TIMED = ("timestamp", "overhead_ms")


def client(server: Running, key: str, **options: Any) -> ReasonBlocks:
    given: dict[str, Any] = {"base_url": server.url, "api_key": key, "live_streaming_enabled": False}
    return ReasonBlocks(**given, e_traces_enabled=False, strict=True, step_deadline_ms=PATIENT_MS, **options)


def log_of(rb: ReasonBlocks, number: int, **options: Any) -> list[dict[str, Any]]:
    """Make a run, and return its log without times."""
    with rb.session(agent_name="clerk", run_id=f"run-{number}", **options) as session:
        run(session, 2 + number % 4)
    entries = [entry.as_dict() for entry in session.step_log]
    return [{name: value for name, value in entry.items() if name not in TIMED} for entry in entries]


def test_the_decisions_are_those_of_one_client_with_all_runs(server: Running) -> None:
    key = server.make_key(org="levels")
    alone = ReasonBlocks(strict=True, pattern_store=LocalStore(), e_traces_enabled=False, step_deadline_ms=PATIENT_MS)
    judged = []
    for number in range(MIN_RUNS + 2):
        with client(server, key) as rb:
            here, there = log_of(alone, number), log_of(rb, number)
        assert here == there, number
        judged.append(there[0]["judged_by"])
    assert set(judged[:MIN_RUNS]) == {"shipped"}
    assert [name.split(":")[:2] for name in judged[MIN_RUNS:]] == [["own", "20 runs"], ["own", "21 runs"]]


def test_another_org_has_levels_of_its_own(server: Running) -> None:
    first, second = server.make_key(org="full"), server.make_key(org="empty")
    with client(server, first) as rb:
        for number in range(MIN_RUNS):
            log_of(rb, number)
        assert log_of(rb, MIN_RUNS)[0]["judged_by"].startswith("own:20 runs:")
    with client(server, second) as rb:
        assert log_of(rb, 0)[0]["judged_by"] == "shipped"
