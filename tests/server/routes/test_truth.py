"""A run that our own client streams to the server reads back as it was, and its page is that of its own log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from reasonblocks import JsonlSink, ReasonBlocks
from reasonblocks.types import RunOptions
from reasonblocks_workbench.report import page_of_log, run_page
from reasonblocks_workbench.traces import RunLog, read_logs
from tests.core.http.world import PATIENT_MS, arun, run
from tests.server.routes.world import Body, Caller, World


@pytest.fixture
def default(world: World) -> Caller:
    """A caller of the org that a client names if it names none, so that every field of an event stays."""
    return world.caller(org="default")


def read_back(caller: Caller, run_id: str) -> list[Body]:
    """Return the events of a run as the server has them."""
    run = caller.get(f"/monitor/runs/{run_id}")["run"]
    return [run["start"], *caller.steps(run_id, limit=7), run["finish"]]


def logs(path: Path) -> dict[str, RunLog]:
    found = [log for log in read_logs(str(path)) if isinstance(log, RunLog)]
    return {log.run_id: replace(log, file="") for log in found}


def client(world: World, caller: Caller, sink: JsonlSink) -> ReasonBlocks:
    return ReasonBlocks(base_url=world.url, api_key=caller.key, sinks=[sink], step_deadline_ms=PATIENT_MS)


def break_off(rb: ReasonBlocks) -> None:
    with rb.session(run_id="broken", mode="observe") as session:
        run(session, 8)
        raise ValueError("broken")


async def in_a_loop(rb: ReasonBlocks) -> None:
    async with rb.session(run_id="in a loop", agent_name="tester") as session:
        await arun(session, 9)


def test_a_streamed_run_reads_back_as_its_own_log(world: World, default: Caller, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    options = RunOptions(run_id="steered", agent_name="tester", task="Fix it.", metadata={"k": [1, None]})
    with client(world, default, JsonlSink(own)) as rb:
        with rb.session(options) as session:
            run(session, 12)
            note_id = default.post("/runs/steered/notes", {"text": "Read the log."}, 201)["note_id"]
            run(session, 10, start=12)
        with pytest.raises(ValueError, match="broken"):
            break_off(rb)
        asyncio.run(in_a_loop(rb))
    sent: dict[str, list[Body]] = {}
    for line in own.read_text(encoding="utf-8").splitlines():
        sent.setdefault(json.loads(line)["run_id"], []).append(json.loads(line))
    assert set(sent) == {"steered", "broken", "in a loop"}
    theirs = tmp_path / "theirs.jsonl"
    with theirs.open("w", encoding="utf-8") as file:
        for run_id, events in sent.items():
            stored = read_back(default, run_id)
            assert stored == events
            file.writelines(json.dumps(event) + "\n" for event in stored)
    pages = [{name: run_page(page_of_log(log)) for name, log in logs(path).items()} for path in (own, theirs)]
    assert pages[0] == pages[1]
    assert "Read the log." in str(sent["steered"])
    (note,) = default.get("/runs/steered/notes")["notes"]
    assert (note["note_id"], note["state"], note["told_step"]) == (note_id, "told", 12)
