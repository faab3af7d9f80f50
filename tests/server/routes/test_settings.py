"""Profiles, agents' summaries, keys and settings belong to an org, and their changes are audited."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.monitors.builtin import WEIGHTS
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.server.routes.world import Caller, World, start

LESSON = {"id": "lesson", "tier": "e3", "fields": {"instruction": "Read the log."}}


def audited(world: World, caller: Caller) -> list[tuple[str, str]]:
    return [(row.action, row.target) for row in world.server.storage.audit.list(caller.org_id, limit=20)]


class TestProfiles:
    def test_the_built_in_ones_are_listed(self, caller: Caller) -> None:
        found = {row["name"]: row for row in caller.get("/monitor/profiles")["profiles"]}
        assert {name: row["weights"] for name, row in found.items()} == {n: dict(w) for n, w in WEIGHTS.items()}
        assert {row["revision"] for row in found.values()} == {0}

    def test_a_profile_is_replaced_by_its_revision_only(self, world: World, caller: Caller) -> None:
        given = {"name": "qa", "weights": {"semantic_loop": 0.9}}
        first = caller.post("/monitor/profiles", given)
        assert (first["revision"], first["weights"]) == (1, {**WEIGHTS["qa"], "semantic_loop": 0.9})
        assert caller("POST", "/monitor/profiles", json=given).status_code == 412
        second = caller.post("/monitor/profiles", {**given, "weights": {}, "revision": 1})
        assert (second["revision"], second["weights"]) == (2, WEIGHTS["qa"])
        assert caller("POST", "/monitor/profiles", json={**given, "revision": 1}).status_code == 412
        (stored,) = [row for row in caller.get("/monitor/profiles")["profiles"] if row["name"] == "qa"]
        assert stored == second
        assert audited(world, caller) == [("profile.put", "qa revision 2"), ("profile.put", "qa revision 1")]

    @pytest.mark.parametrize(
        "given",
        [
            {"name": ""},
            {"name": "\x00"},
            {"name": "own", "weights": {"no_monitor": 0.5}},
            {"name": "own", "weights": {"semantic_loop": 2}},
            {"name": "own", "revision": -1},
        ],
    )
    def test_an_invalid_one_is_refused(self, caller: Caller, given: dict[str, Any]) -> None:
        assert caller("POST", "/monitor/profiles", json=given).status_code == 422
        assert len(caller.get("/monitor/profiles")["profiles"]) == len(WEIGHTS)

    def test_scorers_are_the_monitors(self, caller: Caller) -> None:
        found = caller.get("/monitor/scorers")["scorers"]
        assert [row["name"] for row in found] == list(WEIGHTS["coding"])


COUNTS = {"reached": [3] * 7, "needless": [1] * 7, "checks": True}
OTHER = {"reached": [0] * 7, "needless": [0] * 7, "checks": False}


class TestAgents:
    def test_summaries_are_shared_by_agent_and_profile(self, caller: Caller) -> None:
        for run_id, counts in (("r1", COUNTS), ("r2", OTHER)):
            given = {"agent_name": "a", "run_id": run_id, "summary": {**counts, "of_a_newer_version": 9}}
            assert caller.post("/monitor/agents/profile", given) == {"stored": True}
        params = {"agent_name": "a"}
        assert caller.get("/monitor/agents/profile", params=params) == {"summaries": [COUNTS, OTHER]}
        assert caller.get("/monitor/agents/profile", params={**params, "but": "r2"})["summaries"] == [COUNTS]
        assert caller.get("/monitor/agents/profile", params={**params, "task_profile": "qa"})["summaries"] == []
        (agent,) = caller.get("/monitor/agents")["agents"]
        assert (agent["agent_name"], agent["task_profile"], agent["runs"]) == ("a", "coding", 2)

    def test_summaries_of_an_older_version_are_left_out(self, world: World, caller: Caller) -> None:
        for run_id, summary in (("old", {"composite": 0.4}), ("new", COUNTS)):
            world.server.storage.agents.add(caller.org_id, "a", "coding", run_id, summary, time.time())
        assert caller.get("/monitor/agents/profile?agent_name=a") == {"summaries": [COUNTS]}

    def test_a_deleted_agent_is_forgotten(self, world: World, caller: Caller) -> None:
        caller.post("/monitor/agents/profile", {"agent_name": "a", "run_id": "r", "summary": COUNTS})
        path = "/monitor/agents/profile?agent_name=a"
        assert [caller("DELETE", path).status_code for _ in range(2)] == [204, 404]
        assert caller.get("/monitor/agents")["agents"] == []
        assert audited(world, caller) == [("agent.delete", "a coding")]

    @pytest.mark.parametrize(
        "summary",
        [
            {},
            {"composite": 0.5},
            {**COUNTS, "reached": [1] * 6},
            {**COUNTS, "needless": [-1] * 7},
            {**COUNTS, "reached": [10**9] * 7},
            {**COUNTS, "checks": 1},
            [],
            None,
        ],
    )
    def test_an_invalid_summary_is_refused(self, caller: Caller, summary: object) -> None:
        given = {"agent_name": "a", "run_id": "r", "summary": summary}
        assert caller("POST", "/monitor/agents/profile", json=given).status_code == 422
        assert caller.get("/monitor/agents")["agents"] == []


class TestKeys:
    def test_a_key_that_expires_makes_none_that_outlives_it(self, world: World, caller: Caller) -> None:
        own = caller.post("/keys", {"name": "brief", "scopes": ["admin", "read"], "expires_s": 600}, 201)
        brief = Caller(world.http, own["key"], own["key_id"], caller.org_id)
        made = brief.post("/keys", {"name": "heir", "scopes": ["read"]}, 201)
        assert made["expires"] == own["expires"]
        assert brief.post("/keys", {"name": "x", "scopes": ["read"], "expires_s": 60}, 201)["expires"] < own["expires"]
        refused = brief("POST", "/keys", json={"name": "x", "scopes": ["read"], "expires_s": 6_000})
        assert (refused.status_code, "valid for longer" in refused.json()["detail"]) == (403, True)

    def test_the_text_of_a_key_is_shown_once(self, world: World, caller: Caller) -> None:
        made = caller.post("/keys", {"name": "ci", "scopes": ["ingest", "read"], "expires_s": 60}, 201)
        assert (made["scopes"], made["project_id"]) == (["ingest", "read"], None)
        assert 55 < made["expires"] - time.time() <= 60
        listed = {row["key_id"]: row for row in caller.get("/keys")["keys"]}
        assert set(listed) == {made["key_id"], caller.key_id}
        assert made["key"] not in str(listed)
        new = Caller(caller.http, made["key"], made["key_id"], caller.org_id)
        assert new.get("/monitor/runs")["runs"] == []
        assert new("GET", "/keys").status_code == 403
        assert audited(world, caller) == [("key.add", f"{made['key_id']} ingest read")]

    def test_a_revoked_key_is_refused(self, world: World, caller: Caller) -> None:
        other = world.caller("read", org=caller.org_id)
        other.get("/monitor/runs")
        assert caller("DELETE", f"/keys/{other.key_id}").status_code == 204
        assert other("GET", "/monitor/runs").status_code == 401
        assert audited(world, caller) == [("key.revoke", other.key_id)]
        assert caller("DELETE", "/keys/none").status_code == 404

    def test_a_key_gives_no_scope_that_it_lacks(self, world: World) -> None:
        caller = world.caller("admin")
        assert caller("POST", "/keys", json={"name": "n", "scopes": ["admin", "steer"]}).status_code == 403
        assert [row["key_id"] for row in caller.get("/keys")["keys"]] == [caller.key_id]

    def test_a_key_of_a_project_stays_in_it(self, world: World, caller: Caller) -> None:
        mine = world.caller(org=caller.org_id, project="mine")
        assert mine.post("/keys", {"name": "n", "scopes": ["read"]}, 201)["project_id"] == "mine"
        for method, path, body in (
            ("POST", "/keys", {"name": "n", "scopes": ["read"], "project_id": "other"}),
            ("PUT", "/org", {"retention_days": 1}),
            ("DELETE", "/org", None),
            ("POST", "/monitor/profiles", {"name": "qa"}),
            ("DELETE", "/monitor/agents/profile?agent_name=a", None),
            ("GET", "/monitor/agents", None),
            ("GET", "/traces", None),
            ("POST", "/patterns", LESSON),
            ("PUT", "/patterns/lesson", LESSON),
            ("DELETE", "/patterns/lesson", None),
        ):
            assert mine(method, path, json=body).status_code == 403, path
        assert mine("DELETE", f"/keys/{caller.key_id}").status_code == 404
        assert len(mine.get("/keys")["keys"]) == 2

    @pytest.mark.parametrize(
        "given", [{}, {"name": "n", "scopes": []}, {"name": "n", "scopes": ["root"]}, {"name": "", "scopes": ["read"]}]
    )
    def test_an_invalid_key_is_refused(self, caller: Caller, given: dict[str, Any]) -> None:
        assert caller("POST", "/keys", json=given).status_code == 422


class TestOrg:
    def test_the_retention_is_kept(self, world: World, caller: Caller) -> None:
        assert caller.get("/org") == {"org_id": caller.org_id, "retention_days": 30}
        answer = caller("PUT", "/org", json={"retention_days": 7})
        assert (answer.status_code, answer.json()["retention_days"]) == (200, 7)
        assert caller.get("/org")["retention_days"] == 7
        assert audited(world, caller) == [("org.put", "retention_days 7")]
        for days in (0, 3_651, "x", None):
            assert caller("PUT", "/org", json={"retention_days": days}).status_code == 422

    def test_an_erased_org_has_nothing_left(self, world: World, caller: Caller) -> None:
        caller.send(start("r"))
        caller.post("/patterns", LESSON, 201)
        caller.post("/findings/acme%2Fshop", {"content": "tests"})
        assert caller("DELETE", "/org").json() == {"erased": 1}
        assert caller("GET", "/org").status_code == 401
        again = world.caller(org=caller.org_id)
        assert again("GET", "/patterns/lesson").status_code == 404
        assert again.get("/monitor/runs")["runs"] == []
        assert again.get("/findings") == {"codebases": []}
        assert [key["key_id"] for key in again.get("/keys")["keys"]] == [again.key_id]
        assert audited(world, caller) == [("org.erase", "1 runs")]


class TestTraces:
    def test_a_finished_run_is_kept(self, caller: Caller) -> None:
        for name in ("t1", "t2"):
            given = {"trace_id": name, "outcome": "success", "steps": [{"thought": "a", "action": "b"}]}
            assert caller.post("/traces", given, 202) == {"trace_id": name}
        first = caller.get("/traces", params={"limit": 1})
        rest = caller.get("/traces", params={"after": first["next_after"]})
        assert [trace["trace_id"] for trace in first["traces"] + rest["traces"]] == ["t1", "t2"]
        assert rest["next_after"] is None
        assert first["traces"][0]["steps"][0]["action"] == "b"

    def test_its_traces_are_lines_that_learning_reads(self, caller: Caller, tmp_path: Path) -> None:
        steps = [{"thought": "a", "action": "bash", "action_input": "ls", "observation": "b"}]
        caller.post("/traces", {"trace_id": "t", "outcome": "success", "task": "c", "steps": steps}, 202)
        file = tmp_path / "traces.jsonl"
        file.write_text("".join(f"{json.dumps(trace)}\n" for trace in caller.get("/traces")["traces"]))
        (run,) = read_runs(str(file))
        assert isinstance(run, RecordedRun)
        assert (run.run_id, run.outcome, run.task, run.steps[0].observation) == ("t", "success", "c", "b")

    @pytest.mark.parametrize("given", [{}, {"trace_id": "", "outcome": "o", "steps": []}, {"trace_id": "t"}])
    def test_an_invalid_one_is_refused(self, caller: Caller, given: dict[str, Any]) -> None:
        assert caller("POST", "/traces", json=given).status_code == 422
        assert caller("GET", "/traces?limit=0").status_code == 422


class TestExperiments:
    def test_a_report_compares_the_arms(self, caller: Caller) -> None:
        for number, arm in enumerate(("on", "off", "on")):
            metadata = {"experiment_id": "e/1", "arm": arm, "assignment_unit": f"u{number}", "on_fraction": 0.5}
            caller.send(start(f"r{number}", metadata=metadata, mode="steer" if arm == "on" else "observe"))
        (found,) = caller.get("/monitor/experiments")["experiments"]
        assert (found["experiment_id"], found["runs"]) == ("e/1", 3)
        report = caller.get("/monitor/experiments/e%2F1/report")
        assert (report["verdict"], report["on"]["runs"], report["off"]["runs"]) == ("not enough data", 2, 1)
        assert caller("GET", "/monitor/experiments/none/report").status_code == 404
