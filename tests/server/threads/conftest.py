"""A server on a database of threads, and an agent's process that has an action of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from reasonblocks_threads import Action, Execution, Report, Risk, Threads
from tests.server.board import Board
from tests.server.running import ORG, running
from tests.server.threads.world import Agent, Deploy
from tests.server.ui_http.conftest import enter as enter


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    data = tmp_path_factory.mktemp("threads")
    with Threads(data / "threads.db", org_id=ORG) as threads:
        threads.list()
    with running(data, threads_url=str(data / "threads.db")) as server:
        yield Board(running=server, started=time.time())


@pytest.fixture(scope="package")
def agent(site: Board) -> Iterator[Agent]:
    """A process with the action `deploy`, which drains only when a test says so."""
    calls: list[Mapping[str, Any]] = []

    def deploy(given: Any, execution: Execution) -> Report:
        calls.append(given.model_dump())
        return Report.ok(f"{given.service} is at {given.version}")

    action = Action(
        "deploy", Deploy, deploy, risk=Risk(irreversibility="high", amplifiers=frozenset({"external_effect"}))
    )
    with Threads(site.running.server.settings.threads_url, org_id=ORG, actions=[action]) as threads:
        yield Agent(threads=threads, calls=calls)
