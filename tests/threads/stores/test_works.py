"""Works: the queue's order, leases, attempts, and what a process can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks_threads.errors import Conflict
from reasonblocks_threads.ports import Store
from reasonblocks_threads.stores import open_store
from reasonblocks_threads.values import NewWork, Rows, Work
from tests.threads.stores.lines import MOST, claimed, noting, opened, work


def works(store: Store, thread_id: str | None = None) -> list[Work]:
    with store.read() as reading:
        return list(reading.works(thread_id))


def kinds(store: Store) -> list[str]:
    return [each.kind for each in works(store)]


def added(store: Store, *new: NewWork, key: str = "k", **how: Any) -> str:
    return opened(store, key, Rows(works=new), **how).id


def all_claimed(store: Store, now: float, **how: Any) -> list[str]:
    found = []
    while (one := claimed(store, now, **how)) is not None:
        found.append(one.id)
    return found


def test_append_returns_the_works_that_it_added(store: Store) -> None:
    thread = opened(store)
    lines = noting(thread)
    new = (work("infer", 5.0, urgency=20, needs="inferencer:rules", data={"a": [1]}), work("timeout", 9.0))
    with store.write([thread.id]) as writing:
        found = writing.append(thread, lines.after, lines.events, Rows(works=new), lines.known())
    assert found == works(store) == works(store, thread.id)
    first = found[0]
    assert (first.id, first.thread_id, first.entered) == (f"{thread.id}.1.infer", thread.id, 1)
    assert (first.due_at, first.urgency, first.needs, first.data) == (5.0, 20, "inferencer:rules", {"a": [1]})
    assert (first.attempts, first.lease, first.leased_until, first.error) == (0, None, None, "")
    with store.read() as reading:
        assert reading.work(first.id) == first
        assert reading.work("none") is None
        assert reading.works("th_none") == []


def test_a_claimed_work_is_leased_and_given_to_nobody_else(store: Store) -> None:
    id = added(store, work("infer"))
    found = claimed(store, 10.0, lease="mine")
    assert found is not None
    assert (found.id, found.lease, found.leased_until, found.attempts) == (f"{id}.1.infer", "mine", 70.0, 1)
    assert works(store) == [found]
    assert claimed(store, 69.9) is None


def test_only_due_works_are_claimed(store: Store) -> None:
    added(store, work("begin", 10.0))
    assert claimed(store, 9.9) is None
    assert claimed(store, 10.0) is not None


def test_only_what_a_process_can_do_is_claimed(store: Store) -> None:
    id = added(store, work("execute", needs="action:deploy"), work("timeout", 1.0))
    assert all_claimed(store, 5.0, has=["action:other"]) == [f"{id}.1.timeout"]
    assert all_claimed(store, 5.0, has=["action:deploy", "notifier"]) == [f"{id}.1.execute"]


def test_only_works_of_the_organisation_are_claimed(store: Store) -> None:
    added(store, work(), key="k1", org_id="a")
    second = added(store, work(), key="k2", org_id="b")
    assert all_claimed(store, 5.0, org_id="b") == [f"{second}.1.begin"]
    assert all_claimed(store, 5.0, org_id="c") == []


def test_an_expired_lease_is_claimed_again_while_attempts_are_left(store: Store) -> None:
    id = added(store, work("infer"))
    first = claimed(store, 0.0, lease="first")
    second = claimed(store, 60.0, lease="second")
    assert first is not None
    assert second is not None
    assert (second.id, second.attempts, second.lease) == (first.id, 2, "second")
    with store.write() as writing:
        assert not writing.finish_work(first.id, "first")
        assert not writing.put_back(first.id, "first", due_at=0.0, error="late")
        assert list(writing.expired(now=119.9, most=MOST)) == []
    assert claimed(store, 120.0) is None
    with store.write() as writing:
        assert [each.id for each in writing.expired(now=120.0, most=MOST)] == [f"{id}.1.infer"]
        assert writing.finish_work(first.id, "second")
        assert not writing.finish_work(first.id, "second")
    assert works(store) == []


def test_a_work_has_attempts_and_a_lease_of_its_own(store: Store) -> None:
    added(store, work("execute", data={"attempts": 3, "lease_s": 7.5}))
    for attempt in (1, 2, 3):
        now = 10.0 * attempt
        found = claimed(store, now)
        assert found is not None
        assert (found.attempts, found.leased_until) == (attempt, now + 7.5)
    assert claimed(store, 100.0) is None
    with store.write() as writing:
        assert len(writing.expired(now=100.0, most={})) == 1
        assert len(writing.expired(now=100.0, most={}, org_id="default")) == 1
        assert list(writing.expired(now=100.0, most={}, org_id="other")) == []


def test_a_kind_that_is_not_named_has_one_attempt_of_half_a_minute(store: Store) -> None:
    added(store, work("notify"))
    with store.write() as writing:
        found = writing.claim(now=0.0, lease="L", has=(), leases={}, most={})
    assert found is not None
    assert found.leased_until == 30.0
    with store.write() as writing:
        assert writing.claim(now=31.0, lease="L", has=(), leases={}, most={}) is None
        assert [each.kind for each in writing.expired(now=31.0, most={})] == ["notify"]


def test_a_work_that_was_put_back_is_due_later(store: Store) -> None:
    id = added(store, work("infer"))
    for lease, due_at in (("first", 5.0), ("second", 99.0)):
        assert claimed(store, 5.0, lease=lease) is not None
        with store.write() as writing:
            assert writing.put_back(f"{id}.1.infer", lease, due_at=due_at, error=f"no {lease}")
        assert claimed(store, due_at - 0.1) is None
    (found,) = works(store)
    assert (found.lease, found.leased_until, found.due_at, found.error) == (None, None, 99.0, "no second")
    assert claimed(store, 200.0) is None
    with store.write() as writing:
        assert list(writing.expired(now=6.0, most=MOST)) == [found]


def test_a_thread_has_one_live_infer_and_one_live_execute(store: Store) -> None:
    for kind in ("infer", "execute"):
        thread = opened(store, kind, Rows(works=(work(kind),)))
        with pytest.raises(Conflict), store.write() as writing:
            writing.add_works(thread.id, 7, [work(kind)])
        with store.write() as writing:
            writing.remove_works(thread.id, [kind])
            writing.add_works(thread.id, 7, [work(kind)])
        assert [each.entered for each in works(store, thread.id)] == [7]


def test_a_work_has_one_row(store: Store) -> None:
    thread = opened(store, rows=Rows(works=(work("begin"),)))
    with pytest.raises(Conflict), store.write() as writing:
        writing.add_works(thread.id, 1, [work("begin")])
    with pytest.raises(Conflict, match="does not exist"), store.write() as writing:
        writing.add_works("th_none", 1, [work("begin")])
    assert len(works(store)) == 1


def test_works_are_cancelled_by_kind_or_all(store: Store) -> None:
    thread = opened(store, rows=Rows(works=(work("begin"), work("infer"), work("timeout"))))
    noting(thread).put(store, Rows(cancel=("begin", "execute"), works=(work("notify"),)))
    assert kinds(store) == ["infer", "timeout", "notify"]
    with store.write() as writing:
        assert writing.remove_works(thread.id, []) == 0
        assert writing.remove_works(thread.id, ["infer", "execute"]) == 1
        assert writing.remove_works(thread.id) == 2
    assert works(store) == []


def test_a_timer_is_moved(store: Store) -> None:
    id = added(store, work("timeout", 5.0), work("begin", 5.0))
    with store.write() as writing:
        writing.move_timer(id, 50.0)
    assert all_claimed(store, 49.9) == [f"{id}.1.begin"]
    assert all_claimed(store, 50.0) == [f"{id}.1.timeout"]


def test_a_timer_that_is_moved_is_taken_from_who_has_leased_it(store: Store) -> None:
    id = added(store, work("timeout", 5.0))
    assert claimed(store, 5.0, lease="L") is not None
    with store.write() as writing:
        writing.move_timer(id, 50.0)
        assert not writing.finish_work(f"{id}.1.timeout", "L")
    assert all_claimed(store, 50.0) == [f"{id}.1.timeout"]


def test_a_work_that_is_put_back_or_moved_waits_from_its_new_time_on(store: Store) -> None:
    first = added(store, work("infer", 0.0), key="k1")
    second = added(store, work("timeout", 1.0), key="k2")
    third = added(store, work("begin", 50.0), key="k3")
    assert claimed(store, 0.0, lease="L") is not None
    with store.write() as writing:
        assert writing.put_back(f"{first}.1.infer", "L", due_at=70.0, error="busy")
        writing.move_timer(second, 60.0)
    assert all_claimed(store, 100.0) == [f"{third}.1.begin", f"{second}.1.timeout", f"{first}.1.infer"]


def test_waiting_raises_a_work_above_the_urgent(store: Store) -> None:
    old = added(store, work("begin", 0.0, urgency=50), key="old")
    new = added(store, work("begin", 901.0, urgency=20), key="new")
    newer = added(store, work("begin", 899.0, urgency=20), key="newer")
    assert all_claimed(store, 1_000.0) == [f"{id}.1.begin" for id in (newer, old, new)]


@dataclass(frozen=True, slots=True)
class Queued:
    """A work as the slow model of the queue sees it."""

    name: str
    urgency: int
    due_at: int
    needs: str


def expected(queue: Sequence[Queued], now: int, has: Sequence[str]) -> list[str]:
    """The order of a queue: urgency less 10 for each 5 minutes of waiting, then the earliest due, then the oldest."""
    due = [each for each in queue if each.due_at <= now and each.needs in ("", *has)]
    due.sort(key=lambda each: (each.urgency - (now - each.due_at) * 10 / 300, each.due_at))
    return [each.name for each in due]


MINUTES = st.integers(0, 12).map(lambda minutes: minutes * 60)
QUEUES = st.lists(st.tuples(st.integers(0, 300), MINUTES, st.sampled_from(["", "a", "b"])), min_size=1, max_size=8)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(queue=QUEUES, now=MINUTES, has=st.sets(st.sampled_from("ab")))
def test_a_queue_has_the_order_of_its_rule(queue: Any, now: int, has: set[str]) -> None:
    store = open_store(None)
    try:
        model = []
        for number, (urgency, due_at, needs) in enumerate(queue):
            id = added(store, work("begin", float(due_at), urgency=urgency, needs=needs), key=f"k{number}")
            model.append(Queued(f"{id}.1.begin", urgency, due_at, needs))
        assert all_claimed(store, float(now), has=sorted(has)) == expected(model, now, sorted(has))
    finally:
        store.close()
