"""The patterns that a run was shown are counted once, in its own org: while it runs, and their effects at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reasonblocks.events import StepEvent
from reasonblocks_server._counting import MAX_WAITING, Counting
from reasonblocks_server.errors import StorageUnavailable
from tests.server.routes.walk import PATTERN
from tests.server.routes.world import Body, Caller, World, finish, start, step


def shown(run_id: str, pattern_id: str) -> list[Body]:
    """Return the events of a run that was in trouble, was told a pattern, and recovered."""
    told = {"fsm_state": "SLOW", "pattern_ids": [pattern_id], "retrieved": {"e2": [pattern_id]}}
    return [
        start(run_id),
        step(run_id, 0, metadata=told, monitors_fired=["semantic_loop"]),
        *[step(run_id, index) for index in range(1, 5)],
        finish(run_id),
    ]


def stats(caller: Caller, pattern_id: str) -> Any:
    return caller.get(f"/patterns/{pattern_id}").get("stats")


def counted(world: World) -> None:
    assert world.server.counting.wait(20)


def test_a_finished_run_is_counted_once(world: World, caller: Caller) -> None:
    caller.post("/patterns", {**PATTERN, "id": "counted"}, 201)
    caller.send(*shown("r", "counted"))
    counted(world)
    assert stats(caller, "counted") == {"retrieved": 1, "injected": 1, "recovered": 1}
    caller.send(*shown("r", "counted"))
    caller.send(finish("r", "failure: E"))
    counted(world)
    assert stats(caller, "counted") == {"retrieved": 1, "injected": 1, "recovered": 1}


def test_a_running_run_counts_what_it_was_shown_so_far(world: World, caller: Caller) -> None:
    caller.post("/patterns", {**PATTERN, "id": "early"}, 201)
    events = shown("r", "early")
    caller.send(*events[:2])
    caller.send(*events[:2])
    counted(world)
    assert stats(caller, "early") == {"retrieved": 1, "injected": 1}
    caller.send(*events[2:])
    counted(world)
    assert stats(caller, "early") == {"retrieved": 1, "injected": 1, "recovered": 1}


def test_a_second_of_steps_is_written_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonblocks_server._counting.GATHER_SECONDS", 60.0)
    store = Store()
    counting = Counting(world.server.storage, lambda org_id: store)
    for index in range(50):
        told: Body = {"pattern_ids": ["p", "q"], "retrieved": {"e2": ["p"]}}
        counting.stored("o", [StepEvent(run_id="r", timestamp=1.0, step_index=index, metadata=told)], [])
    assert store.counts == []
    counting.close()
    assert store.counts == [("retrieved", *["p"] * 50), ("injected", *["p"] * 50, *["q"] * 50)]


def test_a_run_counts_no_pattern_of_another_org(world: World, caller: Caller) -> None:
    caller.post("/patterns", {**PATTERN, "id": "foreign"}, 201)
    world.caller().send(*shown("r", "foreign"))
    counted(world)
    assert not stats(caller, "foreign")


class Store:
    """Counts in memory."""

    def __init__(self) -> None:
        self.counts: list[tuple[str, ...]] = []

    def count(self, ids: Iterable[str], what: str) -> None:
        self.counts.append((what, *ids))


def test_a_run_whose_events_cannot_be_read_is_counted_later(
    world: World, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonblocks_server._counting.RETRY_SECONDS", 0.001)
    caller.send(*shown("r", "p"))
    storage, store, failures = world.server.storage, Store(), [1, 2]
    read = storage.runs.finish_body

    def finish_body(org_id: str, run_id: str) -> Body | None:
        if failures:
            failures.pop()
            raise StorageUnavailable("it is gone")
        return read(org_id, run_id)

    monkeypatch.setattr(storage.runs, "finish_body", finish_body)
    counting = Counting(storage, lambda org_id: store)
    counting.stored(caller.org_id, [], ["r"])
    assert counting.wait(20)
    counting.close()
    assert store.counts == [("recovered", "p")]


def test_the_waiting_runs_are_bounded_and_end_with_the_process(world: World) -> None:
    counting = Counting(world.server.storage, lambda org_id: Store())
    with counting._lock:  # the thread cannot take one
        counting._waiting.extend(("o", str(number)) for number in range(MAX_WAITING + 5))
        assert len(counting._waiting) == MAX_WAITING
    counting.close()
    counting.stored("o", [], ["r"])
    assert counting._thread is None
