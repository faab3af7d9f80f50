"""Whoever leaves a session of the real CLI in mid-run leaves no task and no process behind."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_claude_agent import SteeredClaudeClient
from tests.claude_agent.world import TASK, Place, ask, cli, in_time, in_turn, looks, place, session
from tests.steered import steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")


class Held:
    """A tool that does not come back."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    async def __call__(self, arguments: Any) -> dict[str, Any]:
        self.called.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody lets it go")


def children() -> set[str]:
    """The processes that this one has started, by id."""
    tasks = Path("/proc/self/task")
    found: set[str] = set()
    for task in tasks.iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended since it was listed
            found.update((task / "children").read_text().split())
    return found


linux = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="processes are counted in /proc")


async def in_session(here: Place, started: list[SteeredClaudeClient]) -> None:
    async with session(here, steering()) as client:
        started.append(client)
        await ask(client)


async def left(here: Place, tool: Held, cancelled: bool) -> tuple[SteeredClaudeClient, set[Any]]:
    before, started = asyncio.all_tasks(), list[SteeredClaudeClient]()
    if cancelled:
        task = asyncio.ensure_future(in_session(here, started))
        await tool.called.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    else:
        async with session(here, steering()) as client:
            started.append(client)
            await client.query(TASK)
            await tool.called.wait()
    return started[0], asyncio.all_tasks() - before


@linux
@pytest.mark.parametrize("cancelled", [True, False])
def test_no_task_and_no_process_is_left_behind(cancelled: bool) -> None:
    before, tool = children(), Held()
    with place(in_turn(*looks(2)), tool) as here:
        _, tasks = in_time(left(here, tool, cancelled))
    assert (tasks, children() - before) == (set(), set())


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_run_that_was_left_waits_for_its_session(cancelled: bool) -> None:
    tool = Held()
    with place(in_turn(*looks(2)), tool) as here:
        client, _ = in_time(left(here, tool, cancelled))
    assert [view.outcome for view in client.steering.runs.values()] == [None]


def test_one_client_connects_twice() -> None:
    with place(in_turn(*looks(1))) as here:

        async def twice() -> SteeredClaudeClient:
            client = SteeredClaudeClient(steering(), here.options(), run_id="run")
            for _ in range(2):
                async with client:
                    await ask(client)
            return client

        views = in_time(twice()).steering.runs
    assert {run_id: (view.outcome, len(view.step_log)) for run_id, view in views.items()} == {
        "run": ("success", 2),
        "run.2": ("success", 2),
    }
