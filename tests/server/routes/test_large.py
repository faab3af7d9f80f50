"""Runs whose steps do not fit into the memory of a worker are read a part at a time."""

from __future__ import annotations

import pytest

from reasonblocks_server.storage import _runs
from tests.server.routes.world import Caller, World, finish, start, step


def test_a_page_of_large_steps_is_shorter_and_goes_on(
    world: World, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.send(start("r"), *[step("r", index, observation="x" * 1_000) for index in range(10)], finish("r"))
    monkeypatch.setattr(_runs, "MOST_CHARS", 3_000)
    found, after = list[int](), -1
    while True:
        page = caller.get(f"/monitor/runs/r?after={after}")
        found += [body["step_index"] for body in page["steps"]]
        if page["next_after"] is None:
            break
        assert 1 <= len(page["steps"]) <= 3
        after = page["next_after"]
    assert found == list(range(10))
    newest = world.server.storage.runs.newest_steps(caller.org_id, "r", limit=5)
    assert [body["step_index"] for body in newest] == list(range(10))[-len(newest) :]
    assert 1 <= len(newest) <= 3
