"""How runs end: success, a model or a tool that raises, an interrupt, a cancelled task, nobody who looks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_langchain._failures import WATCH
from reasonblocks_testing import RecordingSink
from tests.langchain.scripted import ScriptedModel, by_position, calls
from tests.langchain.world import QUESTION, Way, agent, crash, look, looks, scripted, thread, three_ways
from tests.steered import steering

CRASHES = by_position(calls("look", "First.", id="c0", path="a"), calls("crash", "Then.", id="c1", path="b"), "Done.")
APPROVED: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})


def crashing(mw: SteeringMiddleware, **options: Any) -> Any:
    return agent(ScriptedModel(script=CRASHES), mw, tools=(look, crash), **options)


def asking(mw: SteeringMiddleware, saver: InMemorySaver, model: ScriptedModel, tools: Any = (look,)) -> Any:
    """An agent that asks a human before each `look` and `crash`."""
    human = HumanInTheLoopMiddleware(interrupt_on={"look": True, "crash": True})
    return agent(model, human, mw, tools=tools, checkpointer=saver)


@three_ways
def test_inside_with_a_tool_that_raises_fails_its_run(way: Way) -> None:
    with middleware(steering(), run_id="run") as mw:
        steered = crashing(mw)
        with pytest.raises(LookupError):
            way(steered)
        assert mw.runs["run"].outcome == "failure: LookupError"
    assert [entry.step for entry in mw.step_log] == [0, 1]
    assert mw.final is not None
    assert mw.final.thought_preview == "Then."


@three_ways
def test_a_watched_agent_needs_no_with(way: Way) -> None:
    mw = middleware(steering(), run_id="run")
    steered = mw.watch(crashing(mw))
    with pytest.raises(LookupError):
        way(steered)
    assert mw.runs["run"].outcome == "failure: LookupError"


def test_async_with_works_as_with_does() -> None:
    async def main() -> SteeringMiddleware:
        async with middleware(steering(), run_id="run") as mw:
            with pytest.raises(LookupError):
                await crashing(mw).ainvoke(QUESTION)
        return mw

    assert asyncio.run(main()).runs["run"].outcome == "failure: LookupError"


def test_unseen_failures_are_abandoned_when_the_middleware_closes() -> None:
    mw = middleware(steering(), run_id="run")
    with pytest.raises(LookupError):
        crashing(mw).invoke(QUESTION)
    assert mw.runs["run"].outcome is None
    mw.close()
    assert mw.runs["run"].outcome == "failure: abandoned"


def test_unseen_failures_are_abandoned_when_their_thread_starts_the_next_run() -> None:
    mw = middleware(steering(), run_id="run")
    steered = crashing(mw, checkpointer=InMemorySaver())
    with pytest.raises(LookupError):
        steered.invoke(QUESTION, thread())
    with pytest.raises(LookupError):
        steered.invoke(QUESTION, thread("another"))
    assert [run.outcome for run in mw.runs.values()] == [None, None]
    steered.invoke({"messages": [("user", "Again.")]}, thread())
    assert [run.outcome for run in mw.runs.values()] == ["failure: abandoned", None, "success"]


def test_a_run_that_hits_the_recursion_limit_failed() -> None:
    model = scripted(40)
    with middleware(steering(), run_id="run") as mw, pytest.raises(GraphRecursionError):
        agent(model, mw).invoke(QUESTION, {"recursion_limit": 25})
    assert mw.runs["run"].outcome == "failure: GraphRecursionError"


def test_outside_with_nothing_is_watched_any_more() -> None:
    with middleware(steering(), run_id="run") as mw:
        steered = crashing(mw)
    with pytest.raises(LookupError):
        steered.invoke(QUESTION)
    assert mw.runs["run"].outcome is None


def test_a_failed_run_that_is_taken_up_again_goes_on_as_itself() -> None:
    failing = [True]

    def flaky(path: str) -> str:
        """Fails once."""
        if failing.pop() if failing else False:
            raise LookupError(path)
        return "found"

    model = ScriptedModel(script=by_position(calls("flaky", "Hm.", id="c0", path="a"), "Done."))
    with middleware(steering(), run_id="run") as mw:
        steered = agent(model, mw, tools=(flaky,), checkpointer=InMemorySaver())
        with pytest.raises(LookupError):
            steered.invoke(QUESTION, thread())
        assert mw.runs["run"].outcome == "failure: LookupError"
        steered.invoke(None, thread())
    assert list(mw.runs) == ["run"]
    assert mw.runs["run"].outcome == "success"
    assert [entry.step for entry in mw.step_log] == [0, 1]


# --- pauses


def test_an_interrupt_is_neither_success_nor_failure() -> None:
    sink = RecordingSink()
    model = scripted(2)
    with middleware(steering(sinks=[sink]), run_id="run") as mw:
        steered = asking(mw, InMemorySaver(), model)
        assert steered.invoke(QUESTION, thread())["__interrupt__"]
        assert mw.runs["run"].outcome is None
    assert mw.runs["run"].outcome is None
    steered.invoke(APPROVED, thread())
    steered.invoke(APPROVED, thread())
    assert mw.runs["run"].outcome == "success"
    assert [entry.step for entry in mw.step_log] == [0, 1, 2]


def test_a_paused_run_is_abandoned_by_the_next_on_its_thread() -> None:
    model = ScriptedModel(script=by_position(*looks(2), "More.", "Even more."))
    with middleware(steering(), run_id="run") as mw:
        steered = asking(mw, InMemorySaver(), model)
        steered.invoke(QUESTION, thread())
        steered.invoke({"messages": [("user", "Never mind.")]}, thread())
    assert mw.runs["run"].outcome == "failure: abandoned"


def test_a_tool_that_raises_right_after_a_pause_fails_the_run() -> None:
    model = ScriptedModel(script=by_position(calls("crash", "Try.", id="c0", path="a"), "Done."))
    with middleware(steering(), run_id="run") as mw:
        steered = asking(mw, InMemorySaver(), model, tools=(crash,))
        steered.invoke(QUESTION, thread())
        with pytest.raises(LookupError):
            steered.invoke(APPROVED, thread())
        assert mw.runs["run"].outcome == "failure: LookupError"


def test_a_cancelled_run_stays_open_until_it_is_abandoned() -> None:
    reached = asyncio.Event()

    async def wait(path: str) -> str:
        """Waits for ever."""
        reached.set()
        await asyncio.Event().wait()
        return path

    async def main() -> SteeringMiddleware:
        model = ScriptedModel(script=by_position(calls("wait", "Hm.", id="c0", path="a"), "Done."))
        mw = middleware(steering(), run_id="run")
        task = asyncio.ensure_future(mw.watch(agent(model, mw, tools=(wait,))).ainvoke(QUESTION))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return mw

    mw = asyncio.run(main())
    assert WATCH.following == 0
    assert mw.runs["run"].outcome is None
    mw.close()
    assert mw.runs["run"].outcome == "failure: abandoned"


def test_a_stream_that_nobody_reads_to_its_end_leaves_the_run_open() -> None:
    mw = middleware(steering(), run_id="run")
    steered = mw.watch(agent(scripted(), mw))
    read = steered.stream(QUESTION)
    next(read)
    next(read)
    next(read)
    read.close()
    assert WATCH.following == 0
    assert mw.runs["run"].outcome is None
    mw.close()
    assert mw.runs["run"].outcome == "failure: abandoned"


# --- agents within tools


def test_an_inner_failure_that_the_outer_agent_survives_is_the_inner_ones() -> None:
    with middleware(steering(), run_id="run") as mw:
        child = crashing(mw)

        @tool
        def delegate(task: str) -> str:
            """Hands a task over."""
            try:
                child.invoke(QUESTION)
            except LookupError:
                return "it failed"
            return "it worked"

        model = ScriptedModel(script=by_position(calls("delegate", "Yours.", id="d", task="x"), "Done."))
        agent(model, mw, tools=(delegate,)).invoke(QUESTION)
    assert mw.runs["run"].outcome == "success"
    assert mw.runs["run.2"].outcome == "failure: LookupError"


def test_a_run_that_waits_does_not_fail_with_another_agents_new_run_on_a_thread_of_that_name() -> None:
    waiting, failing = middleware(steering(), run_id="waiting"), middleware(steering(), run_id="failing")
    one = waiting.watch(asking(waiting, InMemorySaver(), ScriptedModel(script=CRASHES)))
    other = failing.watch(crashing(failing, checkpointer=InMemorySaver()))
    one.invoke(QUESTION, thread("1"))
    with pytest.raises(LookupError):
        other.invoke(QUESTION, thread("1"))
    assert (waiting.runs["waiting"].outcome, failing.runs["failing"].outcome) == (None, "failure: LookupError")
