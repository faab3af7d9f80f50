"""How a run asks its store: by which face, with what, and what the step log says of it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from reasonblocks import LocalStore
from reasonblocks.backends.embed import CallableEmbedder
from reasonblocks.exceptions import Unavailable
from reasonblocks.patterns import Curve, SimilarityCurves
from reasonblocks.requests import Retrieve
from reasonblocks.types import ETrace, StepInput
from reasonblocks.util.text import words
from tests.core.test_guests import raiser
from tests.core.world import ScriptedStore, arun, begin, called, client, found, pattern, printed, run, speaks, step


class TwoFaces:
    """A store with both faces; says by which it was asked, and in which thread."""

    def __init__(self, answer: Callable[[], Any] = tuple) -> None:
        self.asked: list[tuple[str, str]] = []
        self._answer = answer

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        self.asked.append(("search", threading.current_thread().name))
        return ()

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        self.asked.append(("asearch", threading.current_thread().name))
        await asyncio.sleep(0)
        answer: tuple[ETrace, ...] = self._answer()
        return answer


def embedder(function: Callable[[str], object]) -> CallableEmbedder:
    """A caller's, which makes a vector of one number of every text."""
    curve = Curve(((0.0, 0.0), (1.0, 1.0)))
    return CallableEmbedder(
        lambda text: [float(bool(function(text)))], id="test", dim=1, curves=SimilarityCurves(e1=curve, e2=curve)
    )


def recording(found_by_tier: dict[str, Sequence[ETrace]] | None = None) -> tuple[list[Retrieve], ScriptedStore]:
    asked: list[Retrieve] = []

    def answer(request: Retrieve) -> Sequence[ETrace]:
        asked.append(request)
        return (found_by_tier or {}).get(request.tier, ())

    return asked, ScriptedStore(answer)


def test_on_an_event_loop_the_async_face_is_awaited_on_that_loop() -> None:
    store = TwoFaces()
    asyncio.run(arun(client(pattern_store=store).session(), 2))
    assert {face for face, _ in store.asked} == {"asearch"}
    assert {thread for _, thread in store.asked} == {"MainThread"}


def test_without_an_event_loop_the_sync_face_is_called() -> None:
    store = TwoFaces()
    run(client(pattern_store=store).session(), 2)
    assert {face for face, _ in store.asked} == {"search"}


def test_an_async_face_past_the_deadline_is_cancelled_and_the_store_unavailable() -> None:
    ended: list[str] = []

    class Slow(TwoFaces):
        async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append("cancelled")
            return ()

    session = client(pattern_store=Slow(), step_deadline_ms=30).session()
    asyncio.run(arun(session, 1))
    assert (ended, session.step_log[0].skipped_reason) == (["cancelled"], "unavailable")


def test_an_async_face_that_keeps_missing_its_deadline_is_switched_off() -> None:
    class Slow(TwoFaces):
        async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
            self.asked.append(("asearch", ""))
            await asyncio.get_running_loop().create_future()
            return ()

    store = Slow()
    asyncio.run(arun(client(pattern_store=store, step_deadline_ms=30).session(), 6))
    assert len(store.asked) == 3


@pytest.mark.parametrize("error", [ConnectionError("no"), asyncio.CancelledError()], ids=["error", "cancelled"])
def test_an_async_face_that_raises_leaves_the_run_unsteered_not_broken(error: BaseException) -> None:
    session = client(pattern_store=TwoFaces(raiser(error)), strict=False).session()
    asyncio.run(arun(session, 2))
    assert [entry.skipped_reason for entry in session.step_log] == ["unavailable", "unavailable"]


def test_what_an_async_face_gives_is_checked() -> None:
    session = client(pattern_store=TwoFaces(lambda: ["no trace"]), strict=False).session()
    asyncio.run(arun(session, 1))
    assert session.faults == {"the pattern store": 1}


def test_a_run_that_is_cancelled_while_its_store_is_awaited_is_cancelled() -> None:
    async def cancelled() -> None:
        class Waits(TwoFaces):
            async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
                started.set()
                await asyncio.get_running_loop().create_future()
                return ()

        started = asyncio.Event()
        task = asyncio.ensure_future(arun(client(pattern_store=Waits()).session(), 1))
        await started.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_an_async_face_that_ignores_its_end_delays_no_step() -> None:
    class Stubborn(TwoFaces):
        async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                waits.append(asyncio.get_running_loop().create_future())
                await waits[0]
            return ()

    async def one() -> str | None:
        session = client(pattern_store=Stubborn(), step_deadline_ms=30).session()
        await asyncio.wait_for(arun(session, 1), 5)
        return session.step_log[0].skipped_reason

    waits: list[asyncio.Future[None]] = []
    assert asyncio.run(one()) == "unavailable"


def test_an_error_that_comes_after_the_deadline_is_not_said_by_the_event_loop() -> None:
    class Late(TwoFaces):
        async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                raise ConnectionError("too late")

    async def one() -> list[Any]:
        said: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        await arun(client(pattern_store=Late(), step_deadline_ms=30).session(), 1)
        await asyncio.sleep(0)
        gc.collect()
        return said

    assert asyncio.run(one()) == []


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), StopIteration(), CancelledError()])
def test_what_an_embedder_raises_in_a_thread_never_ends_the_event_loop(error: BaseException) -> None:
    def refuse(text: str) -> object:
        if text.startswith("thought"):
            raise error
        return (1.0,)

    store = LocalStore(patterns=[pattern("e2-a", exemplars=("text",))], embedder=embedder(refuse))
    session = client(pattern_store=store, strict=False).session()
    asyncio.run(arun(session, 2))
    assert session.step_log[1].skipped_reason == "unavailable"


HANGING_EMBEDDER = """
    import asyncio, threading
    from reasonblocks import LocalStore, ReasonBlocks, Step, StepInput
    from reasonblocks.types import Pattern
    from tests.core.test_retrieval import embedder

    lesson = Pattern(id="a", tier="e2", exemplars=("text",), fields={})
    store = LocalStore(patterns=[lesson], embedder=embedder(lambda text: text == "text" or threading.Event().wait()))
    rb = ReasonBlocks(pattern_store=store, step_deadline_ms=50)

    async def one():
        session = rb.session()
        await session.abegin_step(StepInput())
        decision = await session.abegin_step(StepInput(completed=Step(thought="hm")))
        print(decision.skipped_reason, flush=True)

    asyncio.run(asyncio.wait_for(one(), 5))
    print("done", flush=True)
"""


def test_a_hanging_embedder_holds_up_neither_the_end_of_an_event_loop_nor_the_exit() -> None:
    assert printed(HANGING_EMBEDDER) == "unavailable\ndone\n"


def test_one_run_has_one_memo_and_two_runs_have_two() -> None:
    asked, store = recording()
    rb = client(pattern_store=store)
    for _ in range(2):
        run(rb.session(), 3)
    memos = [id(request.memo) for request in asked]
    half = len(memos) // 2
    assert (len(set(memos[:half])), len(set(memos[half:])), len(set(memos))) == (1, 1, 2)


def test_the_newest_text_comes_with_the_words_that_the_scorer_cut() -> None:
    asked, store = recording()
    run(client(pattern_store=store).session(), 3)
    query = next(request for request in asked if request.tier == "e2")
    assert query.words == words(query.texts[-1]) != ()


def test_a_text_that_was_cut_comes_without_words() -> None:
    asked, store = recording()
    session = client(pattern_store=store).session()
    session.end_step(begin(session, 0), called(0))
    session.begin_step(StepInput(completed=step(0, thought="long " * 1_000)))
    query = next(request for request in asked if request.tier == "e2")
    assert (query.words, len(query.texts[-1]) < 1_300) == (None, True)


def test_the_step_log_says_what_each_tier_gave_and_what_the_call_was_shown() -> None:
    _, store = recording({"e1": found("e1-a"), "e2": found("e2-a", "e2-b"), "e3": found("e3-a")})
    session = client(speaks("Look again."), pattern_store=store).session()
    run(session, 2)
    first, second = session.step_log
    assert (first.retrieved, first.pattern_ids) == ({"e3": ("e3-a",)}, ("e3-a",))
    assert second.retrieved == {"e1": ("e1-a",), "e2": ("e2-a", "e2-b")}
    assert second.pattern_ids == ("e1-a", "e2-a", "e2-b")


def test_the_step_log_says_which_lesson_a_monitor_found() -> None:
    _, store = recording({"e2": found("e2-a")})
    session = client(speaks("It loops. Stop.", failure_type="loop"), pattern_store=store).session()
    run(session, 2)
    assert session.step_log[1].retrieved == {"monitor": ("e2-a",), "e1": (), "e2": ()}


def test_the_step_log_tells_an_empty_answer_from_none() -> None:
    def away(request: Retrieve) -> Sequence[ETrace]:
        raise Unavailable("the pattern store", "away")

    empty, gone = client(pattern_store=ScriptedStore(lambda request: ())), client(pattern_store=ScriptedStore(away))
    logs = []
    for rb in (empty, gone):
        session = rb.session()
        run(session, 1)
        logs.append(session.step_log[0].retrieved)
    assert logs == [{"e3": ()}, {"e3": None}]


def test_what_was_retrieved_is_json_in_the_step_log_and_survives_a_snapshot() -> None:
    _, store = recording({"e3": found("e3-a")})
    rb = client(pattern_store=store)
    session = rb.session()
    begin(session, 0, key="a")
    again = rb.session(snapshot=session.trace.snapshot())
    assert begin(again, 0, key="a").retrieved == {"e3": ("e3-a",)}
    assert session.step_log[0].as_dict()["retrieved"] == {"e3": ["e3-a"]}


def test_the_words_of_a_step_are_those_of_its_text() -> None:
    assert step(1, thought="It fails again.").scored_words == ("it", "fails", "again")


def test_a_lesson_that_rarely_helped_comes_after_one_that_is_less_similar() -> None:
    known = {"recovered": 0, "not_recovered": 9}
    tried = ETrace(pattern=pattern("e2-a", stats=known), similarity=0.95)
    _, store = recording({"e2": [tried, *found("e2-b", "e2-c", similarity=0.75)]})
    session = client(pattern_store=store).session()
    run(session, 2)
    assert session.step_log[1].pattern_ids == ("e2-b", "e2-c")
