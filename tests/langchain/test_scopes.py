"""What leaving `with mw:` ends: what was started inside, never another request's live run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_testing import RecordingSink
from tests.langchain.scripted import ScriptedModel, by_position, calls, in_order
from tests.langchain.world import QUESTION, agent, crash, scripted
from tests.steered import steering

ABANDONED = "failure: abandoned"


def named(name: str) -> Any:
    return {"metadata": {"reasonblocks_run_id": name}}


def outcomes(mw: SteeringMiddleware) -> dict[str, str | None]:
    return {name: run.outcome for name, run in mw.runs.items()}


def leave_open(mw: SteeringMiddleware, name: str) -> None:
    """A run whose end nobody sees: its stream is read for three steps."""
    read = agent(scripted(3), mw).stream(QUESTION, named(name))
    for _ in range(3):
        next(read)
    read.close()


def test_requests_in_tasks_that_each_use_with_do_not_end_each_other() -> None:
    sink = RecordingSink()
    mw = middleware(steering(sinks=[sink]))

    async def main() -> None:
        slow_may_end, both_run = asyncio.Event(), asyncio.Event()

        async def wait(path: str) -> str:
            """Waits until the other request has left."""
            both_run.set()
            await slow_may_end.wait()
            return path

        slow = ScriptedModel(script=by_position(calls("wait", "Hm.", id="c", path="a"), "Done."))

        async def slow_request() -> None:
            async with mw:
                await agent(slow, mw, tools=(wait,)).ainvoke(QUESTION, named("slow"))

        async def quick_request() -> None:
            await both_run.wait()
            async with mw:
                await agent(ScriptedModel(script=in_order("Done.")), mw).ainvoke(QUESTION, named("quick"))
            assert outcomes(mw) == {"slow": None, "quick": "success"}
            slow_may_end.set()

        await asyncio.gather(slow_request(), quick_request())

    asyncio.run(main())
    assert outcomes(mw) == {"slow": "success", "quick": "success"}
    ends = [(event.run_id, event.outcome) for event in sink.events if hasattr(event, "outcome")]
    assert ends == [("quick", "success"), ("slow", "success")]


def test_requests_in_threads_that_each_use_with_do_not_end_each_other() -> None:
    mw = middleware(steering())
    slow_runs, slow_may_end = threading.Event(), threading.Event()

    def slow_script(messages: Sequence[BaseMessage]) -> str:
        slow_runs.set()
        assert slow_may_end.wait(10)
        return "Done."

    def request(script: Any, name: str) -> None:
        with mw:
            agent(ScriptedModel(script=script), mw).invoke(QUESTION, named(name))

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(request, slow_script, "slow")
        assert slow_runs.wait(10)
        request(in_order("Done."), "quick")
        assert outcomes(mw)["slow"] is None
        slow_may_end.set()
        slow.result(10)
    assert outcomes(mw) == {"slow": "success", "quick": "success"}


def test_leaving_ends_what_was_left_open_inside_and_nothing_else() -> None:
    mw = middleware(steering())
    with mw:
        leave_open(mw, "outer")
        with mw:
            leave_open(mw, "inner")
        assert outcomes(mw) == {"outer": None, "inner": ABANDONED}
    assert outcomes(mw) == {"outer": ABANDONED, "inner": ABANDONED}


def test_what_was_started_in_no_with_ends_when_the_last_is_left() -> None:
    mw = middleware(steering())
    leave_open(mw, "outside")
    with mw:
        with mw:
            pass
        assert outcomes(mw) == {"outside": None}
    assert outcomes(mw) == {"outside": ABANDONED}


def test_a_with_of_another_middleware_ends_none_of_ours() -> None:
    ours, other = middleware(steering()), middleware(steering())
    with ours:
        with other:
            leave_open(ours, "ours")
        assert outcomes(ours) == {"ours": None}
    assert outcomes(ours) == {"ours": ABANDONED}


def test_after_an_inner_with_the_outer_one_still_sees_failures() -> None:
    script = by_position(calls("crash", "Try.", id="c", path="a"), "Done.")
    with middleware(steering(), run_id="run") as mw:
        with mw:
            pass
        with pytest.raises(LookupError):
            agent(ScriptedModel(script=script), mw, tools=(crash,)).invoke(QUESTION)
        assert outcomes(mw) == {"run": "failure: LookupError"}


def test_a_with_that_is_left_in_another_context_than_it_was_entered_in_ends_its_runs() -> None:
    mw = middleware(steering())
    contextvars.Context().run(mw.__enter__)
    leave_open(mw, "run")
    contextvars.Context().run(mw.__exit__, None, None, None)
    assert outcomes(mw) == {"run": ABANDONED}


def test_close_still_ends_everything() -> None:
    mw = middleware(steering())
    with mw:
        leave_open(mw, "inside")
        mw.close()
        assert outcomes(mw) == {"inside": ABANDONED}
