"""Runs of real agents: their log, their ids, their threads, and what they leave in the agent's state."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from reasonblocks import ReasonBlocks
from reasonblocks.types import FSMState
from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_testing import ScriptedStore
from tests.langchain.scripted import ScriptedModel, by_position, calls, in_order
from tests.langchain.world import QUESTION, agent, handing_over, looks, scripted, thread
from tests.steered import steering


def test_the_quickstart_runs_offline() -> None:
    strong = scripted(model_name="strong")
    rb = ReasonBlocks(
        api_key="rb_live_test",
        fsm_thresholds={"fast_threshold": 0.15, "fast_window": 8, "slow_window": 4},
        model_routing={"SLOW": strong},
    )
    with middleware(rb, run_id="run-1", agent_name="bugfixer", task="fix the failing tests") as mw:
        result = agent(scripted(), mw).invoke(QUESTION)
    assert result["messages"][-1].text == "All seen."
    assert [entry.step for entry in mw.step_log] == [0, 1, 2, 3]
    assert all(FSMState(entry.fsm_state) for entry in mw.step_log)
    assert all((entry.difficulty is None) == (entry.step == 0) for entry in mw.step_log)
    assert mw.runs["run-1"].outcome == "success"


def test_the_state_carries_plain_json_in_one_channel_and_the_result_nothing_of_ours() -> None:
    steered = agent(scripted(), middleware(steering()), checkpointer=InMemorySaver())
    result = steered.invoke(QUESTION, thread())
    assert set(result) == {"messages"}
    assert "REASONBLOCKS" not in repr(result)
    values = steered.get_state(thread()).values
    assert set(values) == {"messages", "reasonblocks"}
    assert json.loads(json.dumps(values["reasonblocks"])) == values["reasonblocks"]
    assert len(json.dumps(values["reasonblocks"])) < 12_000


def test_tools_are_bound_and_a_graph_without_tools_gets_none() -> None:
    model, plain = scripted(), ScriptedModel(script=in_order("Hello."))
    agent(model, middleware(steering())).invoke(QUESTION)
    assert {seen.tools for seen in model.seen} == {("look",)}
    without = agent(plain, middleware(steering()), tools=())
    assert "tools" not in without.get_graph().nodes
    assert without.invoke(QUESTION)["messages"][-1].text == "Hello."


def test_the_first_call_knows_the_agents_model() -> None:
    store = ScriptedStore(lambda request: ())
    mw = middleware(steering(pattern_store=store))
    agent(scripted(model_name="claude-x"), mw).invoke(QUESTION)
    assert {entry.model_id for entry in mw.step_log} == {"claude-x"}
    assert store.asked[0].model == "claude-x"


def test_an_id_can_be_given_per_call() -> None:
    mw = middleware(steering(), run_id="run-1")
    steered = agent(scripted(), mw)
    steered.invoke(QUESTION, {"metadata": {"reasonblocks_run_id": "mine"}})
    steered.invoke(QUESTION)
    assert list(mw.runs) == ["mine", "run-1"]
    assert mw.trace.state.trace_id == "run-1"


def test_a_run_has_its_agents_name_unless_the_caller_gives_one() -> None:
    mw, named = middleware(steering()), middleware(steering(), agent_name="reviewer")
    for steered in (mw, named):
        agent(scripted(), steered, name="fixer").invoke(QUESTION)
    names = [run.run.agent_name for steered in (mw, named) for run in steered.runs.values()]
    assert names == ["fixer", "reviewer"]


def test_an_agent_without_a_name_does_not_take_that_of_the_watched_agent_whose_tool_it_runs_in() -> None:
    mw = middleware(steering())
    child = agent(scripted(1), mw)

    model = ScriptedModel(script=by_position(calls("delegate", "Yours.", id="d", task="look"), "Done."))
    mw.watch(agent(model, mw, tools=(handing_over(child),), name="fixer")).invoke(QUESTION)
    assert [run.run.agent_name for run in mw.runs.values()] == ["fixer", ""]


def test_a_resumed_run_keeps_its_agents_name() -> None:
    saver, first, later = InMemorySaver(), middleware(steering()), middleware(steering())
    for question, mw in ((QUESTION, first), (None, later)):
        steered = agent(scripted(), mw, checkpointer=saver, name="fixer", interrupt_before=["tools"])
        steered.invoke(question, thread())
    assert [run.run.agent_name for run in later.runs.values()] == ["fixer"]


def test_a_second_question_on_a_thread_is_a_new_run() -> None:
    model = ScriptedModel(script=in_order(*looks(2), *looks(2)))
    mw = middleware(steering(), run_id="run")
    steered = agent(model, mw, checkpointer=InMemorySaver())
    steered.invoke(QUESTION, thread())
    steered.invoke({"messages": [("user", "Once more.")]}, thread())
    first, second = mw.runs.values()
    assert [entry.difficulty for entry in second.step_log] == [entry.difficulty for entry in first.step_log]
    assert second.step_log[0].injection_sources == ("E3Injection",)
    assert [run.outcome for run in (first, second)] == ["success", "success"]


def test_several_middlewares_on_one_agent_have_names_and_states_of_their_own() -> None:
    one, two = middleware(steering(), agent_name="fixer"), middleware(steering(), agent_name="judge: two")
    agent(scripted(), one, two).invoke(QUESTION)
    assert (one.name, two.name) == ("SteeringMiddleware-fixer", "SteeringMiddleware-judge-two")
    assert [len(mw.step_log) for mw in (one, two)] == [4, 4]
    assert [next(iter(mw.runs.values())).outcome for mw in (one, two)] == ["success", "success"]


def test_a_name_is_the_same_in_every_process() -> None:
    assert middleware(steering()).name == middleware(steering()).name == "SteeringMiddleware"


def test_disabled_everything_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    model, mw = scripted(), middleware(steering())
    agent(model, mw).invoke(QUESTION)
    assert {seen.system for seen in model.seen} == {"You fix bugs."}
    assert mw.step_log == []


# --- other middlewares


class Summarise(AgentMiddleware[Any, Any, Any]):
    """Replaces everything by one message before each call but the first."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if len(state["messages"]) < 2:
            return None
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("So far: looked.")]}


def test_summarised_answers_are_scored_from_what_steering_kept() -> None:
    model = ScriptedModel(script=in_order(*looks(3)))
    mw = middleware(steering())
    agent(model, Summarise(), mw).invoke(QUESTION)
    assert [entry.thought_preview for entry in mw.step_log] == ["", *(f"I look at file {at}." for at in range(3))]
    assert [entry.attempts for entry in mw.step_log] == [1, 1, 1, 1]


class EndAt(AgentMiddleware[Any, Any, Any]):
    """Ends the run between our decision and the call."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self._call = call

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        answers = sum(isinstance(message, AIMessage) for message in state["messages"])
        return {"jump_to": "end"} if answers == self._call else None


def test_a_decision_whose_call_never_came_says_so_and_is_not_judged_twice() -> None:
    rb = steering()
    mw = middleware(rb, run_id="run")
    agent(scripted(), mw, EndAt(2)).invoke(QUESTION)
    assert [entry.error for entry in mw.step_log] == [None, None, "not called"]
    assert (mw.runs["run"].outcome, mw.final) == ("success", None)


class Nameless(AgentMiddleware[Any, Any, Any]):
    """Answers calls 1 and 2 by itself, below us, with answers that have no id yet."""

    def __init__(self) -> None:
        super().__init__()
        self._call = -1

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self._call += 1
        if self._call in (1, 2):
            return AIMessage("", tool_calls=calls("look", id=f"n{self._call}", path="x").tool_calls)
        return handler(request)


class Forget(AgentMiddleware[Any, Any, Any]):
    """Takes all but the first answer and its result out again, once: when there are three."""

    def __init__(self) -> None:
        super().__init__()
        self._done = False

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        messages = state["messages"]
        if len(messages) != 7 or self._done:
            return None
        self._done = True
        return {"messages": [RemoveMessage(id=message.id) for message in messages[3:]]}


def test_an_edited_history_never_breaks_the_agent() -> None:
    mw = middleware(steering())
    agent(scripted(), Forget(), mw, Nameless()).invoke(QUESTION)
    assert [(entry.step, entry.attempts) for entry in mw.step_log] == [(at, 1) for at in range(6)]


class Replay(AgentMiddleware[Any, Any, Any]):
    """Answers call 1 by itself, without us, by putting the first answer back in its place."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        answers = [message for message in request.messages if isinstance(message, AIMessage)]
        if len(answers) == 1:
            return AIMessage("From the cache.", id="cached", tool_calls=calls("look", id="k", path="x").tool_calls)
        return handler(request)


def test_an_answer_that_came_without_a_call_is_a_step_too() -> None:
    mw = middleware(steering())
    agent(scripted(), Replay(), mw).invoke(QUESTION)
    assert [entry.error for entry in mw.step_log] == [None, "not called", None, None]
    assert mw.step_log[2].thought_preview == "From the cache."


# --- the package


def test_importing_the_package_loads_no_framework() -> None:
    code = "import sys, reasonblocks_langchain; print('langchain' in sys.modules, 'langgraph' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False"]


def test_the_public_names_are_those_listed() -> None:
    import reasonblocks_langchain

    assert reasonblocks_langchain.SteeringMiddleware is SteeringMiddleware
    assert reasonblocks_langchain.__all__ == [
        "RequestPart",
        "SavingPlan",
        "SteeringMiddleware",
        "TokenSaving",
        "TokenSavingMiddleware",
        "memory_tools",
        "middleware",
    ]
    with pytest.raises(AttributeError):
        _ = reasonblocks_langchain.nothing
