"""Profiles of agents: kept in memory or in a file, read when a run starts, added to when it has finished."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import ReasonBlocks, SteeringSession
from reasonblocks.backends.profiles import MAX_IN_MEMORY, ProfileFile, ProfileMemory
from reasonblocks.exceptions import Unavailable
from reasonblocks.monitors.patience import MIN_STRETCHES
from reasonblocks.monitors.profile import MAX_RUNS, Summary
from reasonblocks.types import StepInput
from reasonblocks.types.outcomes import ABANDONED
from reasonblocks_workbench.replay import OtherRuns
from tests.core.world import RecordingSink, arun, begin, client, longest_gap, run, step, through_json

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


def summary(number: int, needless: int = 0) -> Summary:
    """The summary of a run, told apart from others by its counts."""
    return {"reached": [number] * 7, "needless": [needless] * 7, "checks": False}


def known(runs: int = MIN_STRETCHES, needless: int = 0) -> ProfileMemory:
    """The profile of an agent that got stuck once in each of its runs."""
    profiles = ProfileMemory()
    for number in range(runs):
        profiles.add(AGENT, f"run {number}", summary(1, needless))
    return profiles


def stuck(rb: ReasonBlocks, steps: int = 12, **keywords: Any) -> SteeringSession:
    """A finished run that does the same again and again."""
    session = rb.session(agent_name="clerk", **keywords)
    for number in range(steps):
        session.begin_step(StepInput(completed=step(0) if number else None))
    session.finish()
    return session


def test_an_agents_own_runs_decide_its_patience_from_eight_dead_stretches_on() -> None:
    assert judged_by(client(profile=known(MIN_STRETCHES - 1))) == "shipped"
    assert judged_by(client(profile=known())) == "own: 2 of 3, 8 runs"


def test_runs_that_get_stuck_are_counted_and_learned_from() -> None:
    rb = client()
    assert stuck(rb).step_log[0].judged_by == "shipped"
    for _ in range(MIN_STRETCHES):
        stuck(rb)
    assert judged_by(rb).startswith("own: 2 of 3, ")


def test_other_agents_orgs_and_task_profiles_have_a_patience_of_their_own() -> None:
    rb = client(profile=known())
    others = ({"agent_name": "other"}, {"org_id": "other"}, {"task_profile": "qa"}, {"agent_name": ""})
    assert [judged_by(rb, **other) for other in others] == ["shipped"] * 4


def test_without_a_profile_every_run_has_the_shipped_patience() -> None:
    assert judged_by(client(profile=None)) == "shipped"


def test_a_given_patience_goes_before_the_learned_one() -> None:
    assert judged_by(client(profile=known(), patience="5 of 6")) == "patience: 5 of 6"


def test_an_agent_that_gets_out_by_itself_is_left_alone_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rb = client(profile=known(9, needless=1))
    with caplog.at_level(logging.INFO, "reasonblocks"):
        assert [judged_by(rb), judged_by(rb)] == ["own: silent, 9 runs"] * 2
    said = [
        record.getMessage() for record in caplog.records if "gets out of its dead steps by itself" in record.message
    ]
    assert len(said) == 1


def test_a_share_of_the_runs_explores() -> None:
    rb = client(profile=known(), explore=1.0)
    assert judged_by(rb) == "explores: 8 runs"
    assert judged_by(client(explore=1.0)) == "shipped"


def test_a_disabled_client_keeps_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    profiles = ProfileMemory()
    finished(client(profile=profiles), 1)
    assert profiles.read(AGENT, "") == ()


def test_an_abandoned_run_and_a_replayed_one_are_not_added() -> None:
    profiles = ProfileMemory()
    session = client(profile=profiles).session(agent_name="clerk")
    run(session, 3)
    session.finish(ABANDONED)
    finished(client(profile=profiles), 1, framework="replay")
    assert profiles.read(AGENT, "") == ()


def test_a_run_that_ends_twice_is_added_once() -> None:
    profiles = ProfileMemory()
    session = finished(client(profile=profiles), 1)
    run(session, 5, start=3)
    session.finish("failure: late")
    assert len(profiles.read(AGENT, "")) == 1


def test_the_patience_in_use_reaches_the_evaluator_and_the_events() -> None:
    sink = RecordingSink()
    rb = client(sinks=[sink], profile=known())
    session = finished(rb, 1)
    own = session.trace.state.patience
    assert own.rung == "2 of 3"
    assert rb._evaluator.asked[-1].patience == own  # type: ignore[attr-defined]  # the scripted one
    rb.close()
    steps = [event for event in sink.events if event.as_dict()["event"] == "step"]
    assert steps[-1].as_dict()["metadata"]["judged_by"] == own.name  # type: ignore[index,call-overload]


def test_a_restored_run_keeps_its_patience_where_there_is_no_profile() -> None:
    session = client(profile=known()).session(agent_name="clerk")
    run(session, 2)
    elsewhere = client(profile=None).session(snapshot=through_json(session.trace.snapshot()))
    run(elsewhere, 3, start=2)
    assert elsewhere.step_log[-1].judged_by == session.step_log[0].judged_by == "own: 2 of 3, 8 runs"


def test_a_restored_run_that_began_without_a_profile_gets_none() -> None:
    session = client().session(agent_name="clerk")
    run(session, 2)
    elsewhere = client(profile=known()).session(agent_name="clerk", snapshot=through_json(session.trace.snapshot()))
    run(elsewhere, 3, start=2)
    assert elsewhere.step_log[-1].judged_by == "shipped"


def test_memory_keeps_the_newest_runs_and_agents() -> None:
    profiles = ProfileMemory()
    for number in range(MAX_RUNS + 5):
        profiles.add(AGENT, str(number), summary(number))
    runs = profiles.read(AGENT, "")
    assert (len(runs), runs[-1]) == (MAX_RUNS, summary(MAX_RUNS + 4))
    for number in range(MAX_IN_MEMORY):
        profiles.add(("default", str(number), "coding"), "run", summary(0))
    assert profiles.read(AGENT, "") == ()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "profiles.db"


def test_a_file_outlives_its_client(path: Path) -> None:
    for _ in range(MIN_STRETCHES):
        stuck(client(profile=path))
    assert judged_by(client(profile=path)).startswith("own: 2 of 3, ")


def test_auto_is_a_file_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    finished(client(profile="auto"), 1)
    assert [row.runs for row in ProfileFile(tmp_path / "home" / "profiles.db").agents()] == [1]


def test_nothing_is_created_before_a_run_has_finished(path: Path) -> None:
    session = client(profile=path).session(agent_name="clerk")
    run(session, 3)
    assert not path.parent.exists()


def test_a_file_keeps_the_newest_runs_of_an_agent(path: Path) -> None:
    file = ProfileFile(path)
    for number in range(MAX_RUNS + 2):
        file.add(AGENT, str(number), summary(number))
    runs = file.read(AGENT, "")
    assert (len(runs), runs[0], runs[-1]) == (MAX_RUNS, summary(2), summary(MAX_RUNS + 1))


def test_a_file_keeps_a_bounded_number_of_agents(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ProfileFile(path)
    for number in range(4):
        file.add(("default", str(number), "coding"), "run", summary(0))
    statement = "INSERT INTO runs (org_id, agent_name, task_profile, run, summary) VALUES ('o', ?, 'coding', 'r', '{}')"
    changed(path, statement, *[(f"a{number}",) for number in range(1_000)])
    file.add(AGENT, "run", summary(0))
    rows = file.agents()
    assert (len(rows), rows[0].agent_name) == (1_000, "clerk")


def test_a_run_is_left_out_of_its_own_profile_and_replaced_when_it_comes_again(path: Path) -> None:
    for profiles in (ProfileFile(path), ProfileMemory()):
        profiles.add(AGENT, "one", summary(1))
        profiles.add(AGENT, "two", summary(2))
        profiles.add(AGENT, "one", summary(3))
        assert profiles.read(AGENT, "") == (summary(2), summary(3))
        assert profiles.read(AGENT, "one") == (summary(2),)


def test_nothing_of_a_runs_text_is_in_the_file(path: Path) -> None:
    finished(client(profile=path), 2, task="the secret task", run_id="the secret run", metadata={"secret": "secret"})
    stored = path.read_bytes()
    assert b"clerk" in stored
    for text in (b"secret", b"thought-", b"read_file", b"fine", b"agent-model"):
        assert text not in stored


def changed(path: Path, statement: str, *rows: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany(statement, rows or [()])


def test_a_damaged_row_is_skipped(path: Path) -> None:
    file = ProfileFile(path)
    file.add(AGENT, "one", summary(1))
    file.add(AGENT, "two", summary(2))
    changed(path, "UPDATE runs SET summary = '{\"reached\": ' WHERE run = 'one'")
    assert file.read(AGENT, "") == (summary(2),)


ADD = """
import sys
from reasonblocks.backends.profiles import ProfileFile
from reasonblocks.exceptions import Unavailable
from reasonblocks.monitors.patience import MIN_STRETCHES
from reasonblocks.monitors.profile import MAX_RUNS, Summary
file = ProfileFile(sys.argv[1])
for number in range(40):
    summary = {"reached": [1] * 7, "needless": [0] * 7, "checks": False}
    file.add(("default", "clerk", "coding"), f"{sys.argv[2]}-{number}", summary)
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
        changed(path, "CREATE TABLE theirs (id)")
    elif kind == "newer":
        ProfileFile(path).add(AGENT, "one", summary(1))
        changed(path, "PRAGMA user_version=99")
    else:
        path.write_bytes(b"SQLite format 3\x00" + b"damaged" * 1_000 if kind == "damaged" else b"no database" * 100)
    return path


BROKEN = ["a folder", "in a file", "another program's", "newer", "damaged", "no database"]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_cannot_be_used_costs_one_line_in_the_log(
    kind: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rb = client(profile=broken(path, kind))
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


def test_an_agent_without_a_name_has_no_profile(path: Path) -> None:
    finished(client(profile=path), 2, agent_name="")
    assert not path.exists()


class Slow(ProfileMemory):
    """A store that blocks for a while."""

    inline = False

    def read(self, agent: tuple[str, str, str], but: str) -> Any:
        time.sleep(0.15)
        return super().read(agent, but)

    def add(self, agent: tuple[str, str, str], run: str, summary: Any) -> None:
        time.sleep(0.15)
        super().add(agent, run, summary)


def test_a_slow_store_does_not_block_an_event_loop() -> None:
    rb = client(profile=Slow())

    async def whole() -> None:
        async with rb.session(agent_name="clerk") as session:
            await arun(session, 3)

    assert asyncio.run(longest_gap(whole())) < 0.12


def test_a_store_that_hangs_delays_a_run_by_its_deadline_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Hangs(ProfileMemory):
        inline = False

        def read(self, agent: tuple[str, str, str], but: str) -> Any:
            time.sleep(3)

    session = client(profile=Hangs(), step_deadline_ms=200).session(agent_name="clerk")
    started = time.monotonic()
    begin(session, 0)
    assert time.monotonic() - started < 1
    assert "the profile is unavailable" in caplog.text


def test_a_profile_may_be_a_path() -> None:
    assert isinstance(ReasonBlocks(profile="./profiles"), ReasonBlocks)
    assert isinstance(ReasonBlocks(profile=Path("profiles")), ReasonBlocks)


def others(*runs: tuple[str, str]) -> OtherRuns:
    """Recorded runs: name and task."""
    profiles = OtherRuns()
    for number, (name, task) in enumerate(runs):
        profiles.task_key = task
        profiles.add(AGENT, name, summary(number))
    profiles.complete = True
    return profiles


def test_a_recorded_run_is_judged_by_the_runs_of_other_tasks_alone() -> None:
    profiles = others(("one", "a"), ("two", "a"), ("three", "b"))
    profiles.task_key = "a"
    assert profiles.read(AGENT, "one") == (summary(2),)


def test_no_recorded_run_is_judged_before_all_are_there() -> None:
    profiles = others(("one", "a"), ("two", "b"))
    profiles.complete = False
    assert profiles.read(AGENT, "three") == ()
