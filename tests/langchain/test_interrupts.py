"""`interrupt_when` asks a person before a call, and tells the agent the answer with that call."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import ModelRetryMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from reasonblocks.adapters import RunView
from reasonblocks.events import RunFinish, StepEvent
from reasonblocks.exceptions import ConfigError
from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_testing import RecordingSink
from tests.langchain.scripted import ScriptedModel, Turn, by_position, calls, in_order
from tests.langchain.world import QUESTION, agent, handing_over, looks, thread
from tests.steered import steering

CALLS = 4
ASKED_BEFORE = 2
"""The call before which a person is asked."""
NOTE = "An operator of this run says: Look at f9."
ANSWER: Command[Any] = Command(resume="Look at f9.")


def lost(run: RunView) -> str | None:
    return "it is lost" if run.trace.state.calls == ASKED_BEFORE else None


def asking(rb: Any = None, **options: Any) -> SteeringMiddleware:
    return middleware(rb or steering(), run_id="run", interrupt_when=lost, **options)


def scripted(*turns: Turn) -> ScriptedModel:
    return ScriptedModel(script=by_position(*(turns or looks(CALLS))))


def invoke(steered: Any, given: Any) -> Any:
    return steered.invoke(given, thread())


def ainvoke(steered: Any, given: Any) -> Any:
    return asyncio.run(steered.ainvoke(given, thread()))


def stream(steered: Any, given: Any) -> Any:
    parts = list(steered.stream(given, thread(), stream_mode=["values", "messages", "updates"]))
    found = {key: value for mode, part in parts if mode == "updates" for key, value in part.items()}
    return {**found, **[part for mode, part in parts if mode == "values"][-1]}


def astream(steered: Any, given: Any) -> Any:
    async def read() -> Any:
        return [part async for part in steered.astream(given, thread(), stream_mode="values")]

    return {key: value for part in asyncio.run(read()) for key, value in part.items()}


WAYS = pytest.mark.parametrize("way", [invoke, ainvoke, stream, astream])


def told(model: ScriptedModel) -> list[int]:
    """The calls whose request has the note, each as often as it has it."""
    return [at for at, seen in enumerate(model.seen) for _ in range(seen.text.count(NOTE))]


@WAYS
def test_a_person_is_asked_and_the_answer_is_told_with_that_call_alone(way: Callable[..., Any]) -> None:
    sink, model = RecordingSink(), scripted()
    mw = asking(steering(sinks=[sink]))
    steered = agent(model, mw, checkpointer=InMemorySaver())
    (asked,) = way(steered, QUESTION)["__interrupt__"]
    assert asked.value == {
        "type": "reasonblocks",
        "reason": "it is lost",
        "run_id": "run",
        "step": ASKED_BEFORE,
        "state": "NORMAL",
        "monitors_fired": ["semantic_loop"],
        "failure_type": "loop",
        "thought": "I look at file 1.",
    }
    assert json.loads(json.dumps(asked.value)) == asked.value
    mw.close()
    assert (len(model.seen), mw.runs["run"].outcome) == (ASKED_BEFORE, None)
    result = way(steered, ANSWER)
    mw.close()
    assert result["messages"][-1].text == "All seen."
    assert told(model) == [ASKED_BEFORE]
    assert [entry.step for entry in mw.step_log] == list(range(CALLS + 1))
    assert [entry.interrupt for entry in mw.step_log] == [None, None, "it is lost", None, None]
    assert mw.step_log[ASKED_BEFORE].injection_sources[0] == "OperatorInjection"
    assert mw.step_log[ASKED_BEFORE].attempts == 1
    assert mw.runs["run"].outcome == "success"
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["success"]
    assert [event.step_index for event in sink.events if isinstance(event, StepEvent)] == list(range(CALLS + 2))
    assert not any(NOTE in message.text for message in result["messages"])


def test_at_most_once_is_a_condition_asked_about_a_person_s_answer() -> None:
    """The condition holds to the end of the run, so it asks once."""
    model = scripted()
    mw = middleware(steering(), interrupt_when=lambda run: "it is lost")
    steered = agent(model, mw, checkpointer=InMemorySaver())
    assert invoke(steered, QUESTION)["__interrupt__"]
    assert "__interrupt__" not in invoke(steered, ANSWER)
    assert told(model) == [1]


@pytest.mark.parametrize("answer", ["", "  "])
def test_with_an_empty_answer_the_run_goes_on_without_a_note(answer: str) -> None:
    model, mw = scripted(), asking()
    steered = agent(model, mw, checkpointer=InMemorySaver())
    invoke(steered, QUESTION)
    assert invoke(steered, Command(resume=answer))["messages"][-1].text == "All seen."
    assert told(model) == []
    assert not any("OperatorInjection" in entry.injection_sources for entry in mw.step_log)


def test_an_answer_of_none_by_its_interrupts_id_is_no_note() -> None:
    """LangGraph itself fails on `Command(resume=None)`."""
    model = scripted()
    steered = agent(model, asking(), checkpointer=InMemorySaver())
    (asked,) = invoke(steered, QUESTION)["__interrupt__"]
    assert invoke(steered, Command(resume={asked.id: None}))["messages"][-1].text == "All seen."
    assert not any("An operator" in seen.text for seen in model.seen)


def test_an_answer_that_is_no_text_is_told_as_one() -> None:
    model = scripted()
    steered = agent(model, asking(), checkpointer=InMemorySaver())
    invoke(steered, QUESTION)
    invoke(steered, Command(resume=42))
    assert "An operator of this run says: 42" in model.seen[ASKED_BEFORE].text


def test_without_a_checkpointer_nobody_is_asked_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    model = scripted()
    mw = middleware(steering(strict=False), interrupt_when=lambda run: "it" if run.trace.state.calls % 2 else None)
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        result = agent(model, mw).invoke(QUESTION)
    assert result["messages"][-1].text == "All seen."
    assert "__interrupt__" not in result
    assert [entry.interrupt for entry in mw.step_log] == [None, "it", None, "it", None]
    (line,) = [record.message for record in caplog.records if "interrupt_when" in record.message]
    assert "checkpointer" in line
    with pytest.raises(ConfigError, match="checkpointer"):
        agent(scripted(), asking()).invoke(QUESTION)


def test_a_run_that_waits_goes_on_in_another_process(tmp_path: Path) -> None:
    database, mw = str(tmp_path / "agent.db"), asking()
    with SqliteSaver.from_conn_string(database) as saver:
        assert invoke(agent(scripted(), mw, checkpointer=saver), QUESTION)["__interrupt__"]
    command = [sys.executable, "-m", "tests.langchain.answered_process", database, "Look at f9."]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert said == {"steps": [2, 3, 4], "told": [0], "outcome": "success"}
    assert [entry.step for entry in mw.step_log] == [0, 1, 2]


def test_another_branch_asks_again_and_tells_its_own_answer() -> None:
    model, mw = scripted(), asking()
    steered = agent(model, mw, checkpointer=InMemorySaver())
    invoke(steered, QUESTION)
    waits = steered.get_state(thread()).config
    invoke(steered, ANSWER)
    model.seen.clear()
    assert steered.invoke(None, waits)["__interrupt__"]
    assert model.seen == []
    invoke(steered, Command(resume="Look at f8."))
    assert "says: Look at f8." in model.seen[0].text
    assert told(model) == []
    assert [entry.step for entry in mw.step_log] == list(range(CALLS + 1))
    assert mw.runs["run"].outcome == "success"


def test_a_run_that_another_question_abandoned_is_still_told_the_answer() -> None:
    model = ScriptedModel(script=in_order(*looks(CALLS)[:ASKED_BEFORE], "Well.", *looks(CALLS)[ASKED_BEFORE:]))
    mw = asking()
    steered = agent(model, mw, checkpointer=InMemorySaver())
    invoke(steered, QUESTION)
    waits = steered.get_state(thread()).config
    invoke(steered, {"messages": [("user", "Never mind.")]})
    assert mw.runs["run"].outcome == "failure: abandoned"
    assert steered.invoke(None, waits)["__interrupt__"]
    invoke(steered, ANSWER)
    assert told(model) == [ASKED_BEFORE + 1]
    assert mw.runs["run"].outcome == "success"


def test_a_retried_call_is_told_the_answer_in_each_attempt() -> None:
    turns = looks(CALLS)
    model = ScriptedModel(script=in_order(*turns[:ASKED_BEFORE], ConnectionError("down"), *turns[ASKED_BEFORE:]))
    mw = asking()
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    steered = agent(model, retry, mw, checkpointer=InMemorySaver())
    invoke(steered, QUESTION)
    invoke(steered, ANSWER)
    assert told(model) == [ASKED_BEFORE, ASKED_BEFORE + 1]
    assert [entry.attempts for entry in mw.step_log] == [1, 1, 2, 1, 1]


def test_an_agent_within_a_tool_asks_and_is_told() -> None:
    inner_model, inner = scripted(), asking()
    child = agent(inner_model, inner)

    mw = middleware(steering(), run_id="outer")
    model = scripted(calls("delegate", "Yours.", id="d", task="look"), "Done.")
    steered = mw.watch(agent(model, mw, tools=(handing_over(child),), checkpointer=InMemorySaver()))
    (asked,) = invoke(steered, QUESTION)["__interrupt__"]
    assert asked.value["run_id"] == "run"
    assert mw.runs["outer"].outcome is None
    assert invoke(steered, ANSWER)["messages"][-1].text == "Done."
    assert told(inner_model) == [ASKED_BEFORE]
    assert [one.runs[name].outcome for one, name in ((mw, "outer"), (inner, "run"))] == ["success", "success"]


def test_each_of_two_middlewares_asks_and_tells_its_own_answer() -> None:
    model = scripted()
    one, two = (middleware(steering(), agent_name=name, interrupt_when=lost) for name in ("one", "two"))
    steered = agent(model, one, two, checkpointer=InMemorySaver())
    assert len(invoke(steered, QUESTION)["__interrupt__"]) == 1
    assert len(invoke(steered, Command(resume="First."))["__interrupt__"]) == 1
    assert "__interrupt__" not in invoke(steered, Command(resume="Second."))
    assert [model.seen[ASKED_BEFORE].text.count(f"says: {word}.") for word in ("First", "Second")] == [1, 1]


def test_nobody_is_asked_about_an_observed_run() -> None:
    model, mw = scripted(), asking(mode="observe")
    assert "__interrupt__" not in invoke(agent(model, mw, checkpointer=InMemorySaver()), QUESTION)
    assert [entry.withheld_interrupt for entry in mw.step_log] == [None, None, "it is lost", None, None]


def test_a_call_that_fails_after_the_answer_leaves_the_run_open_until_it_is_abandoned() -> None:
    turns = looks(CALLS)
    model = ScriptedModel(script=in_order(*turns[:ASKED_BEFORE], ConnectionError("down"), *turns[ASKED_BEFORE:]))
    mw = asking()
    steered = agent(model, mw, checkpointer=InMemorySaver())
    invoke(steered, QUESTION)
    with pytest.raises(ConnectionError):
        invoke(steered, ANSWER)
    mw.close()
    assert mw.runs["run"].outcome == "failure: abandoned"
