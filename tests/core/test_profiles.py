"""Profiles of agents: kept in memory or in a file, read when a run starts, added to when it has finished."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.backends.profiles import MAX_IN_MEMORY, ProfileFile, ProfileMemory
from reasonblocks.engine.own_level import COMPOSITE, MAX_RUNS, MIN_RUNS
from reasonblocks.exceptions import Unavailable
from reasonblocks.types import StepInput
from reasonblocks.types.outcomes import ABANDONED
from reasonblocks_workbench.replay import OtherRuns
from tests.core.world import begin, called, client, run, speaks, step, through_json

AGENT = ("default", "clerk", "coding")


def finished(
    rb: ReasonBlocks, runs: int, *, calls: int = 3, agent_name: str = "clerk", **keywords: Any
) -> SteeringSession:
    """So many finished runs; the last session."""
    sessions = [rb.session(agent_name=agent_name, **keywords) for _ in range(runs)]
    for session in sessions:
        run(session, calls)
        session.finish()
    return sessions[-1]


def judged_by(rb: ReasonBlocks, agent_name: str = "clerk", **keywords: Any) -> str:
    """The thresholds of a new run, from its step log."""
    session = rb.session(agent_name=agent_name, **keywords)
    run(session, 1)
    return session.step_log[0].judged_by


def quiet(**options: Any) -> ReasonBlocks:
    return client(**options)


def test_the_twenty_first_run_is_judged_by_the_agents_own_level() -> None:
    rb = quiet()
    assert finished(rb, MIN_RUNS).step_log[0].judged_by == "shipped"
    assert judged_by(rb).startswith("own:20 runs:")


def test_other_agents_orgs_and_task_profiles_have_levels_of_their_own() -> None:
    rb = quiet()
    finished(rb, MIN_RUNS)
    others = ({"agent_name": "other"}, {"org_id": "other"}, {"task_profile": "qa"})
    assert [judged_by(rb, **other) for other in others] == ["shipped"] * 3


def test_without_a_profile_every_run_is_judged_by_the_shipped_thresholds() -> None:
    rb = quiet(profile=None)
    finished(rb, MIN_RUNS)
    assert judged_by(rb) == "shipped"


def test_a_given_calibration_goes_before_the_own_level() -> None:
    rb = quiet(calibration={"composite_fires": 0.3})
    finished(rb, MIN_RUNS)
    assert judged_by(rb) == "calibration"


def test_a_given_calibration_may_let_the_own_level_in() -> None:
    rb = quiet(calibration={"composite_fires": 0.3, "own_level": True})
    finished(rb, MIN_RUNS)
    assert judged_by(rb).startswith("own:")


def test_a_disabled_client_keeps_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    profiles = ProfileMemory()
    finished(quiet(profile=profiles), 1)
    assert profiles.read(AGENT, "") == ()


def test_an_abandoned_run_is_not_added() -> None:
    profiles = ProfileMemory()
    session = quiet(profile=profiles).session(agent_name="clerk")
    run(session, 3)
    session.finish(ABANDONED)
    assert profiles.read(AGENT, "") == ()


def test_a_run_that_ends_twice_is_added_once() -> None:
    profiles = ProfileMemory()
    session = finished(quiet(profile=profiles), 1)
    run(session, 5, start=3)
    session.finish("failure: late")
    assert len(profiles.read(AGENT, "")) == 1


def test_the_level_in_use_reaches_the_evaluator_and_the_events() -> None:
    from tests.core.world import RecordingSink

    sink = RecordingSink()
    rb = quiet(sinks=[sink])
    session = finished(rb, MIN_RUNS + 1)
    own = session.trace.state.own_level
    assert own
    assert rb._evaluator.asked[-1].own_level == own
    rb.close()
    steps = [event for event in sink.events if event.as_dict()["event"] == "step"]
    assert steps[-1].as_dict()["metadata"]["judged_by"] == own.name  # type: ignore[index,call-overload]


def test_a_restored_run_keeps_its_level_where_there_is_no_profile() -> None:
    rb = quiet()
    finished(rb, MIN_RUNS)
    session = rb.session(agent_name="clerk")
    run(session, 2)
    elsewhere = quiet(profile=None).session(snapshot=through_json(session.trace.snapshot()))
    run(elsewhere, 3, start=2)
    assert elsewhere.step_log[-1].judged_by == session.step_log[0].judged_by
    assert elsewhere.trace.state.own_level == session.trace.state.own_level


def test_a_restored_run_that_began_without_a_level_gets_none() -> None:
    session = quiet().session(agent_name="clerk")
    run(session, 2)
    rb = quiet()
    finished(rb, MIN_RUNS)
    elsewhere = rb.session(agent_name="clerk", snapshot=through_json(session.trace.snapshot()))
    run(elsewhere, 3, start=2)
    assert elsewhere.step_log[-1].judged_by == "shipped"


def test_the_maxima_of_a_run_survive_a_snapshot() -> None:
    loud = [speaks("again", composite=0.5)] * 4
    session = client(*loud).session()
    run(session, 3)
    elsewhere = client().session(snapshot=through_json(session.trace.snapshot()))
    run(elsewhere, 5, start=3)
    assert elsewhere.trace.state.maxima[COMPOSITE] == 0.5


def test_the_last_step_counts_in_no_maximum() -> None:
    session = client(speaks("again", composite=0.5), speaks("again", composite=0.6)).session()
    run(session, 2)
    session.finish(completed=step(1))
    assert session.trace.state.maxima[COMPOSITE] == 0


def test_memory_keeps_the_newest_runs_and_agents() -> None:
    profiles = ProfileMemory()
    for number in range(MAX_RUNS + 5):
        profiles.add(AGENT, str(number), {COMPOSITE: number / 1_000})
    runs = profiles.read(AGENT, "")
    assert (len(runs), runs[-1][COMPOSITE]) == (MAX_RUNS, (MAX_RUNS + 4) / 1_000)
    for number in range(MAX_IN_MEMORY):
        profiles.add(("default", str(number), "coding"), "run", {COMPOSITE: 0})
    assert profiles.read(AGENT, "") == ()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "profiles.db"


def test_a_file_outlives_its_client(path: Path) -> None:
    finished(quiet(profile=path), MIN_RUNS)
    assert judged_by(quiet(profile=path)).startswith("own:20 runs:")


def test_auto_is_a_file_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    finished(quiet(profile="auto"), 1)
    assert [row.runs for row in ProfileFile(tmp_path / "home" / "profiles.db").agents()] == [1]


def test_nothing_is_created_before_a_run_has_finished(path: Path) -> None:
    session = quiet(profile=path).session(agent_name="clerk")
    run(session, 3)
    assert not path.parent.exists()


def test_a_file_keeps_the_newest_runs_of_an_agent(path: Path) -> None:
    file = ProfileFile(path)
    for number in range(MAX_RUNS + 2):
        file.add(AGENT, str(number), {COMPOSITE: number / 1_000})
    runs = file.read(AGENT, "")
    assert (len(runs), runs[0][COMPOSITE], runs[-1][COMPOSITE]) == (MAX_RUNS, 0.002, (MAX_RUNS + 1) / 1_000)


def test_a_file_keeps_a_bounded_number_of_agents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ProfileFile(path)
    for number in range(4):
        file.add(("default", str(number), "coding"), "run", {COMPOSITE: 0})
    with sqlite3.connect(path) as db:
        db.executemany(
            "INSERT INTO runs (org_id, agent_name, task_profile, run, summary) VALUES ('o', ?, 'coding', 'r', '{}')",
            [(f"a{number}",) for number in range(1_000)],
        )
    db.close()
    file.add(AGENT, "run", {COMPOSITE: 0})
    rows = file.agents()
    assert (len(rows), rows[0].agent_name) == (1_000, "clerk")


def test_a_run_is_left_out_of_its_own_profile_and_replaced_when_it_comes_again(path: Path) -> None:
    for profiles in (ProfileFile(path), ProfileMemory()):
        profiles.add(AGENT, "one", {COMPOSITE: 0.1})
        profiles.add(AGENT, "two", {COMPOSITE: 0.2})
        profiles.add(AGENT, "one", {COMPOSITE: 0.3})
        assert profiles.read(AGENT, "") == ({COMPOSITE: 0.2}, {COMPOSITE: 0.3})
        assert profiles.read(AGENT, "one") == ({COMPOSITE: 0.2},)


def test_a_damaged_row_is_skipped(path: Path) -> None:
    file = ProfileFile(path)
    file.add(AGENT, "one", {COMPOSITE: 0.1})
    file.add(AGENT, "two", {COMPOSITE: 0.2})
    with sqlite3.connect(path) as db:
        db.execute("UPDATE runs SET summary = '{\"composite\": ' WHERE run = 'one'")
    db.close()
    assert file.read(AGENT, "") == ({COMPOSITE: 0.2},)


def test_nothing_of_a_runs_text_is_in_the_file(path: Path) -> None:
    finished(quiet(profile=path), 2, task="the secret task", run_id="the secret run", metadata={"secret": "secret"})
    stored = path.read_bytes()
    assert b"clerk" in stored
    for text in (b"secret", b"thought-", b"read_file", b"fine", b"agent-model"):
        assert text not in stored


ADD = """
import sys
from reasonblocks.backends.profiles import ProfileFile
from reasonblocks.exceptions import Unavailable
file = ProfileFile(sys.argv[1])
for number in range(40):
    file.add(("default", "clerk", "coding"), f"{sys.argv[2]}-{number}", {"composite": 0.1})
"""


def test_two_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", ADD, str(path), name]) for name in ("one", "two")]
    assert [child.wait(60) for child in children] == [0, 0]
    assert len(ProfileFile(path).read(AGENT, "")) == 80


def broken(path: Path, kind: str) -> Path:
    """A file that cannot be used."""
    path.parent.mkdir()
    if kind == "a folder":
        path.mkdir()
    elif kind == "in a file":
        path.write_text("a file")
        return path / "profiles.db"
    elif kind == "another program's":
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE theirs (id)")
        db.close()
    elif kind == "newer":
        ProfileFile(path).add(AGENT, "one", {COMPOSITE: 0.1})
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version=99")
        db.close()
    else:
        path.write_bytes(b"SQLite format 3\x00" + b"damaged" * 1_000 if kind == "damaged" else b"no database" * 100)
    return path


BROKEN = ["a folder", "in a file", "another program's", "newer", "damaged", "no database"]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_cannot_be_used_costs_one_line_in_the_log(
    kind: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rb = quiet(profile=broken(path, kind))
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        session = finished(rb, 3)
    assert (session.faults, session.step_log[0].judged_by) == ({}, "shipped")
    assert len(caplog.records) == 1
    assert "the profile is unavailable" in caplog.text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_a_pipe_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(Unavailable, match="not a regular file"):
        ProfileFile(path).read(AGENT, "")


def test_an_agent_without_a_name_has_no_profile_in_a_file(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        finished(quiet(profile=path), 2, agent_name="")
    assert not path.exists()
    assert [record.getMessage().count("agent_name") > 0 for record in caplog.records] == [True]


class Slow(ProfileMemory):
    """A store that blocks for a while."""

    inline = False

    def read(self, agent: tuple[str, str, str], but: str) -> Any:
        time.sleep(0.15)
        return super().read(agent, but)

    def add(self, agent: tuple[str, str, str], run: str, summary: Any) -> None:
        time.sleep(0.15)
        super().add(agent, run, summary)


async def longest_gap(work: Any) -> float:
    """The longest time in which the event loop did nothing else, while it did the work."""
    gaps = [0.0]

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            gaps.append(time.perf_counter() - before)

    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0.02)
    await work
    watching.cancel()
    return max(gaps)


def test_a_slow_store_does_not_block_an_event_loop() -> None:
    rb = quiet(profile=Slow())

    async def whole() -> None:
        async with rb.session(agent_name="clerk") as session:
            for number in range(3):
                completed = step(number - 1) if number else None
                decision = await session.abegin_step(StepInput(completed=completed))
                session.end_step(decision, called(number))

    assert asyncio.run(longest_gap(whole())) < 0.12


def test_a_store_that_hangs_delays_a_run_by_its_deadline_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Hangs(ProfileMemory):
        inline = False

        def read(self, agent: tuple[str, str, str], but: str) -> Any:
            time.sleep(3)

    session = quiet(profile=Hangs(), step_deadline_ms=200).session()
    started = time.monotonic()
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        begin(session, 0)
    assert time.monotonic() - started < 1
    assert "the profile is unavailable" in caplog.text


def test_a_profile_that_is_a_word_is_refused_and_a_path_is_not(tmp_path: Path) -> None:
    assert isinstance(ReasonBlocks(profile="./profiles"), ReasonBlocks)
    assert isinstance(ReasonBlocks(profile=Path("profiles")), ReasonBlocks)


def test_replayed_runs_are_not_added_to_a_profile() -> None:
    profiles = ProfileMemory()
    finished(quiet(profile=profiles), 1, framework="replay")
    assert profiles.read(AGENT, "") == ()


def others(*runs: tuple[str, str]) -> OtherRuns:
    """Recorded runs: name and task."""
    profiles = OtherRuns()
    for number, (name, task) in enumerate(runs):
        profiles.task_key = task
        profiles.add(AGENT, name, {COMPOSITE: number / 10})
    profiles.complete = True
    return profiles


def test_a_recorded_run_is_judged_by_the_runs_of_other_tasks_alone() -> None:
    profiles = others(("one", "a"), ("two", "a"), ("three", "b"))
    profiles.task_key = "a"
    assert profiles.read(AGENT, "one") == ({COMPOSITE: 0.2},)


def test_no_recorded_run_is_judged_before_all_are_there() -> None:
    profiles = others(("one", "a"), ("two", "b"))
    profiles.complete = False
    assert profiles.read(AGENT, "three") == ()
