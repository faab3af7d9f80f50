"""`AsyncThreads`: the methods of `Threads`, none of which holds the event loop up."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reasonblocks_threads import (
    Actor,
    AsyncThreads,
    CardClosed,
    Cause,
    Evidence,
    Phase,
    Policy,
    Proposal,
    Threads,
    UnknownThread,
)
from reasonblocks_threads.ports import Reading
from reasonblocks_threads.stores import SqliteStore

MARA = Actor.person("mara")
SECONDS = 20.0
CAUSE = Cause(kind="k", key="k", title="t")


def methods(kind: type) -> dict[str, inspect.Signature]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: inspect.signature(method) for name, method in found if not name.startswith("_")}


def test_it_has_the_methods_of_threads_with_their_parameters() -> None:
    ours, theirs = methods(AsyncThreads), methods(Threads)
    assert ours == theirs
    assert inspect.signature(AsyncThreads) == inspect.signature(Threads)


def test_a_matter_is_decided_from_an_event_loop(tmp_path: Path) -> None:
    async def decide() -> None:
        async with AsyncThreads(tmp_path / "t.db") as threads:
            proposal = Proposal.of_action("acknowledge", {"note": "seen"}, confidence=0.9)
            thread = await threads.open(CAUSE, proposals=[proposal])
            assert await threads.drain() > 0
            [card] = await threads.cards()
            await threads.note(thread.id, "look", by=MARA)
            await threads.add_evidence(thread.id, Evidence(id="e", label="l", text="t", private=True))
            assert await threads.erase(thread.id, by=MARA) == 1
            await threads.set_policy(thread.id, Policy(auto_advance=frozenset()), by=MARA)
            await threads.answer(card, "approve", by=MARA)
            with pytest.raises(CardClosed):
                await threads.answer(card, "approve", by=MARA)
            await threads.cancel(thread.id, by=MARA)
            await threads.drain()
            assert (await threads.card(card.id)).by == "mara"
            after = await threads.take_over(thread.id, by=MARA, to="lea")
            assert after == await threads.get(thread.id)
            assert [each.id for each in await threads.list(live=False)] == [thread.id]
            assert await threads.log(thread.id) == await threads.feed()
            assert await threads.doctor() == ()
            other = await threads.open(Cause(kind="k", key="two", title="t"), children=[CAUSE_OF_A_CHILD])
            answers = await threads.answer_children(other.id, "approve", by=MARA)
            assert len(answers.skipped) == 1
            assert (await threads.resolve(other.children[0].id, "gone")).phase is Phase.DISMISSED
            assert (await threads.dismiss(other.id, by=MARA)).phase is Phase.DISMISSED
            with pytest.raises(UnknownThread):
                await threads.get("th_nowhere")

    asyncio.run(decide())


CAUSE_OF_A_CHILD = Cause(kind="part", key="part", title="a part")


class Slow(SqliteStore):
    """A store whose readers wait until they may go on."""

    def __init__(self) -> None:
        super().__init__(None)
        self.go_on = threading.Event()
        self.go_on.set()

    @contextmanager
    def read(self) -> Iterator[Reading]:
        assert self.go_on.wait(SECONDS)
        with super().read() as reading:
            yield reading


def test_a_slow_store_does_not_hold_the_loop_up() -> None:
    async def wait(store: Slow, threads: AsyncThreads) -> None:
        thread = await threads.open(CAUSE)
        store.go_on.clear()
        reading = asyncio.create_task(threads.get(thread.id))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not reading.done()
        abandoned = asyncio.create_task(threads.get(thread.id))
        await asyncio.sleep(0)
        abandoned.cancel()
        with pytest.raises(asyncio.CancelledError):
            await abandoned
        store.go_on.set()
        assert (await reading).id == thread.id

    store = Slow()
    try:
        asyncio.run(wait(store, AsyncThreads(store)))
    finally:
        store.close()


def test_wait_returns_with_what_another_task_does() -> None:
    async def wait() -> None:
        threads = AsyncThreads(None)
        thread = await threads.open(CAUSE)
        assert (await threads.wait(thread.id, 0.0)).phase is Phase.PROPOSED
        waiting = asyncio.create_task(threads.wait(thread.id, SECONDS))
        await asyncio.sleep(0)
        await threads.dismiss(thread.id, by=MARA)
        assert (await waiting).phase is Phase.DISMISSED
        await threads.close()

    asyncio.run(wait())


def test_a_worker_serves_an_event_loop() -> None:
    async def wait() -> None:
        threads = AsyncThreads(None)
        async with threads.worker():
            thread = await threads.open(CAUSE)
            after = await threads.wait(thread.id, SECONDS, until=lambda now: now.phase.waits)
            assert after.phase.waits
        await threads.close()

    asyncio.run(wait())
