"""A run that waits for a human goes on where it stopped, in any process, and so do the runs within it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunState

from reasonblocks.exceptions import SnapshotError
from reasonblocks_openai_agents import SteeredRun, steering_of
from tests.openai_agents.other_process import ANSWERS, CALLS, KINDS, PARTS, alone, approved, is_over, part
from tests.openai_agents.world import (
    Judged,
    Place,
    Result,
    fixer,
    in_turn,
    looks,
    place,
    whole_and_streamed,
)
from tests.steered import steering
from tests.whole import in_whole

DECIDED = ("step", "difficulty", "fsm_state", "gate_decision", "injection_sources", "intervention_texts")


def decided(entries: Sequence[Any]) -> list[dict[str, Any]]:
    return [{key: entry[key] for key in DECIDED} for entry in entries]


def whole_run() -> list[dict[str, Any]]:
    """Return the decisions of a run without approvals."""
    with place(in_turn(*looks(CALLS))) as here:
        log = steering_of(here.run(steering(), fixer())).step_log
    return decided([json.loads(json.dumps(entry.as_dict())) for entry in log])


def in_processes(file: Path, way: str, kind: str) -> list[dict[str, Any]]:
    """Return the output of each part; no process runs more than two of them."""
    parts: list[dict[str, Any]] = []
    while not is_over(file):
        command = [sys.executable, "-m", "tests.openai_agents.other_process", str(file), way, kind]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        parts += map(json.loads, said.splitlines())
    assert len(parts) > PARTS, "there was one process alone"
    return parts


def logs(parts: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """The step log of each run, those of all parts together, the outermost first."""
    runs: dict[str, list[Any]] = {}
    for one in parts:
        for run_id, _, entries in one["runs"]:
            runs.setdefault(run_id, []).extend(entries)
    return list(runs.values())


@in_whole
def test_a_run_goes_on_in_other_processes(tmp_path: Path) -> None:
    parts = in_processes(tmp_path / "state.json", "run_streamed/responses", "alone")
    assert [one["runs"][0][:2] for one in parts] == [["run", None]] * CALLS + [["run", "success"]]
    (log,) = logs(parts)
    assert decided(log) == whole_run()
    assert [entry["gate_decision"] for entry in log[1:]] == ["inject", "cooldown", "cooldown"]
    assert [spoke for one in parts for spoke in one["guided"]] == [True, True, False, False]


@in_whole
def test_the_runs_within_a_run_go_on_in_other_processes(tmp_path: Path) -> None:
    parts = in_processes(tmp_path / "state.json", "run/chat", "deep")
    outer, middle, inner = logs(parts)
    assert decided(inner) == whole_run()
    assert [[entry["step"] for entry in log] for log in (outer, middle)] == [[0, 1]] * 2
    assert [one[1] for one in parts[-1]["runs"]] == ["success"] * 3
    assert {one[1] for one in parts[0]["runs"]} == {None}


def here_and_now(here: Place, kind: str) -> list[SteeredRun]:
    """The parts of a run, each from what JSON holds of the one before."""
    runs: list[SteeredRun] = []
    kept: dict[str, Any] | None = None
    while not runs or kept:
        run, left = part(here, kind, kept)
        runs.append(run)
        kept = json.loads(json.dumps(left))
    return runs


@whole_and_streamed
@pytest.mark.parametrize("kind", ["with_inner", "deep"])
def test_the_runs_within_a_run_go_on_from_what_json_holds_of_them(kind: str, way: str) -> None:
    with place(ANSWERS[kind], way) as here:
        runs = here_and_now(here, kind)
    assert [run.outcome for run in runs] == [None] * CALLS + ["success"]
    for _ in range(list(KINDS).index(kind)):
        runs = [child for run in runs for child in run.children]
    log = [entry for run in runs for entry in run.step_log]
    assert decided([json.loads(json.dumps(entry.as_dict())) for entry in log]) == whole_run()
    assert {run.run_id for run in runs} == {runs[0].run_id}
    assert runs[-1].outcome == "success"


def paused(here: Place, rb: Any, agent: Agent[Any], **options: Any) -> tuple[Result, SteeredRun]:
    result = here.run(rb, agent, **options)
    assert result.interruptions
    return result, steering_of(result)


@whole_and_streamed
def test_what_a_human_refuses_is_the_steps_result(way: str) -> None:
    judged = Judged()
    rb, agent = steering(scorer=judged), alone()
    with place(in_turn(*looks(1)), way) as here:
        result, run = paused(here, rb, agent)
        state = result.to_state()
        for one in result.interruptions:
            state.reject(one)
        last = steering_of(here.run(rb, agent, state, snapshot=run.snapshot()))
        assert last.outcome == "success"
    ((refusal, _),), _ = judged.results
    assert "not approved" in refusal
    assert judged.thoughts == ["I look at file 0.", "All seen."]


@whole_and_streamed
def test_what_a_human_refuses_an_agent_of_a_tool_is_that_agents_result(way: str) -> None:
    rb, agent = steering(), KINDS["with_inner"]()
    with place(ANSWERS["with_inner"], way) as here:
        result, run = paused(here, rb, agent)
        state = result.to_state()
        for one in result.interruptions:
            state.reject(one)
        second = here.run(rb, agent, state, snapshot=run.snapshot())
        (child,) = steering_of(second).children
        assert child.run_id == run.children[0].run_id
        assert [entry.step for entry in child.step_log] == [1]


@whole_and_streamed
def test_without_its_snapshot_a_run_begins_anew(way: str) -> None:
    rb, agent = steering(), alone()
    with place(ANSWERS["alone"], way) as here:
        result, run = paused(here, rb, agent)
        state: RunState[Any, Any] = here.until(approved(agent, result.to_state().to_json()))
        second = steering_of(here.run(rb, agent, state))
        assert (second.run_id == run.run_id, [entry.step for entry in second.step_log]) == (False, [0])
        assert second.session.run.task == "Fix the failing tests."


@pytest.mark.parametrize("broken", [{}, {"version": 99}, {"version": 1, "calls": "many"}])
def test_a_snapshot_that_cannot_be_read_is_refused_before_any_request(broken: dict[str, Any]) -> None:
    with place(ANSWERS["alone"]) as here:
        with pytest.raises(SnapshotError):
            here.run(steering(), alone(), snapshot=broken)
        assert here.requests == []


@pytest.mark.parametrize(
    "part",
    [{"children": 7}, {"children": ["x"]}, {"children": [{}]}, {"waits_for": 7}, {"children": [{"snapshot": {}}]}],
)
def test_a_snapshot_whose_runs_within_cannot_be_read_is_refused(part: dict[str, Any]) -> None:
    with place(ANSWERS["alone"]) as here:
        _, run = paused(here, steering(), alone())
        with pytest.raises(SnapshotError):
            here.run(steering(), alone(), snapshot={**run.snapshot(), **part})
        assert len(here.requests) == 1
