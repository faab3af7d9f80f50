"""An agent whose own end is in doubt gets one more call, in a real agent with middlewares of the caller's."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.events import RunFinish
from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_testing import RecordingSink, Turn, tool_call
from reasonblocks_testing.server import ScriptedServer
from tests.langchain.scripted import ScriptedModel, by_position, calls, in_order
from tests.langchain.scripted import Turn as Said
from tests.langchain.test_control import Ends
from tests.langchain.world import QUESTION, Way, agent, handing_over, thread, three_ways

CLAIM = "All tests pass, done."
DOUBT = "The newest check, 1 step before this answer, failed"


def edit(path: str) -> str:
    """Edits a file."""
    return "ok"


def run_tests(path: str) -> str:
    """Runs the tests."""
    raise ToolException("3 failed, 9 passed")


TOOLS = (edit, StructuredTool.from_function(run_tests, handle_tool_error=True))
EDITS = calls("edit", "I change the rounding.", id="c0", path="prices.py")
FAILS = calls("run_tests", "I run the tests.", id="c1", path="prices.py")
CLAIMED = (EDITS, FAILS, CLAIM)
AGAIN = "Three tests fail, and I could not find out why."


def client(**options: Any) -> ReasonBlocks:
    return ReasonBlocks(**{"strict": True, "pattern_store": LocalStore(), "second_look": "unchecked", **options})


def scripted(*turns: Said) -> ScriptedModel:
    return ScriptedModel(script=by_position(*(turns or (*CLAIMED, AGAIN))))


def built(model: Any, *around: Any, **options: Any) -> Any:
    return agent(model, *around, **{"tools": TOOLS, **options})


def steered(**options: Any) -> SteeringMiddleware:
    return middleware(client(**options), run_id="run")


@three_ways
def test_a_claim_that_the_tests_deny_gets_one_more_call(way: Way) -> None:
    sink, model = RecordingSink(), scripted()
    mw = steered(sinks=[sink])
    result = way(mw.watch(built(model, mw)))
    mw.close()
    assert [message.text for message in result["messages"][-2:]] == [CLAIM, AGAIN]
    assert not any("[REASONBLOCKS]" in message.text for message in result["messages"])
    assert [message.type for message in model.seen[3].messages[-2:]] == ["ai", "human"]
    assert DOUBT in model.seen[3].messages[-1].text
    assert [entry.step for entry in mw.step_log] == [0, 1, 2, 3]
    assert DOUBT in mw.step_log[3].intervention_texts[0]
    assert mw.runs["run"].outcome == "success"
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["success"]


def test_a_second_look_may_go_on_with_tools() -> None:
    again = calls("run_tests", "I run them again.", id="c9", path="prices.py")
    model, mw = scripted(*CLAIMED, again, AGAIN), steered()
    assert built(model, mw).invoke(QUESTION)["messages"][-1].text == AGAIN
    assert [entry.step for entry in mw.step_log] == [0, 1, 2, 3, 4]
    assert mw.runs["run"].outcome == "success"


def test_each_run_of_a_thread_has_its_own() -> None:
    model = ScriptedModel(script=in_order(*CLAIMED, AGAIN, *CLAIMED, AGAIN))
    mw = steered()
    agent = built(model, mw, checkpointer=InMemorySaver())
    for question in (QUESTION, {"messages": [("user", "Once more.")]}):
        assert agent.invoke(question, thread())["messages"][-1].text == AGAIN
    assert [len(run.step_log) for run in mw.runs.values()] == [4, 4]
    assert [run.outcome for run in mw.runs.values()] == ["success", "success"]


def test_it_goes_on_in_another_process() -> None:
    saver = InMemorySaver()
    one, two = steered(), steered()
    before: dict[str, Any] = {"checkpointer": saver, "interrupt_before": ["SteeringMiddleware.before_model"]}
    first, later = built(scripted(), one, **before), scripted()
    for given in (QUESTION, None, None, None):
        first.invoke(given, thread())
    result = built(later, two, checkpointer=saver).invoke(None, thread())
    assert result["messages"][-1].text == AGAIN
    (asked,) = later.seen
    assert DOUBT in asked.messages[-1].text
    assert [entry.step for entry in two.step_log] == [3]
    assert (one.runs["run"].outcome, two.runs["run"].outcome) == (None, "success")


def test_with_placement_system_the_doubt_follows_the_answer() -> None:
    """A request that ends with an answer asks Anthropic's models to complete it."""
    anthropic = pytest.importorskip("langchain_anthropic")
    turns = [
        Turn(text="I change the rounding.", tool_calls=(tool_call("c0", "edit", {"path": "prices.py"}),)),
        Turn(text="I run the tests.", tool_calls=(tool_call("c1", "run_tests", {"path": "prices.py"}),)),
        Turn(text=CLAIM),
        Turn(text=AGAIN),
    ]
    left = iter(turns)
    with ScriptedServer(lambda asked: next(left)) as server:
        chat = anthropic.ChatAnthropic(
            model="claude-scripted", api_key="none", base_url=server.anthropic_url, max_retries=0
        )
        result = built(chat, steered(placement="system")).invoke(QUESTION)
        last = server.requests[-1].body["messages"][-1]
    assert result["messages"][-1].text == AGAIN
    assert (last["role"], DOUBT in str(last["content"])) == ("user", True)


# --- with other middlewares


def test_the_hooks_of_middlewares_listed_before_run_once_at_the_true_end() -> None:
    before, after, mw = Ends("before"), Ends("after"), steered()
    result = built(scripted(), before, mw, after).invoke(QUESTION)
    assert result["messages"][-1].text == AGAIN
    assert before.answers == [4]
    assert after.answers == [3, 4]


def test_an_end_that_another_middleware_brings_about_is_not_looked_at() -> None:
    model, mw = scripted(*CLAIMED[:2], *CLAIMED), steered()
    limit = ModelCallLimitMiddleware(run_limit=2, exit_behavior="end")
    result = built(model, limit, mw).invoke(QUESTION)
    assert len(model.seen) == 2
    assert "limit" in result["messages"][-1].text


def test_a_tool_whose_output_is_the_answer_ends_the_run() -> None:
    @tool(return_direct=True)
    def report(text: str) -> str:
        """Reports."""
        return f"Reported: {text}"

    turns = (EDITS, FAILS, calls("report", CLAIM, id="c2", text="done"), "Never said.")
    model, mw = scripted(*turns), steered()
    result = built(model, mw, tools=(*TOOLS, report)).invoke(QUESTION)
    assert result["messages"][-1].text == "Reported: done"
    assert mw.runs["run"].outcome == "success"


def test_a_middleware_that_ends_the_second_look_ends_the_run() -> None:
    model, mw = scripted(), steered()
    limit = ModelCallLimitMiddleware(run_limit=3, exit_behavior="end")
    result = built(model, limit, mw).invoke(QUESTION)
    assert len(model.seen) == 3
    assert isinstance(result["messages"][-1], AIMessage)
    assert mw.runs["run"].outcome == "success"


def test_two_middlewares_have_a_second_look_each() -> None:
    one, two = (middleware(client(), agent_name=name) for name in ("one", "two"))
    model = scripted(*CLAIMED, CLAIM, CLAIM, "Never said.")
    built(model, one, two).invoke(QUESTION)
    assert len(model.seen) == 5
    for mw in (one, two):
        (run,) = mw.runs.values()
        assert [entry.step for entry in run.step_log] == [0, 1, 2, 3, 4]
        assert run.outcome == "success"


def test_an_agent_within_a_tool_looks_again_for_itself() -> None:
    inner = steered()
    child = built(scripted(), inner)

    mw = middleware(client(), run_id="outer")
    model = scripted(calls("delegate", "Yours.", id="d", task="fix"), "It could not be fixed.")
    result = mw.watch(built(model, mw, tools=(handing_over(child),))).invoke(QUESTION)
    assert [message.text for message in result["messages"][-2:]] == [AGAIN, "It could not be fixed."]
    assert (len(mw.step_log), len(inner.step_log)) == (2, 4)


class Report(BaseModel):
    """What was done."""

    text: str


@three_ways
@pytest.mark.parametrize("again", [AGAIN, Report(text=AGAIN).model_dump_json()])
def test_a_structured_response_is_the_end(again: str, way: Way) -> None:
    """A second answer without one would cost the run the first, and raise an error."""
    model = scripted(EDITS, FAILS, Report(text=CLAIM).model_dump_json(), again)
    mw = steered()
    result = way(built(model, mw, response_format=ProviderStrategy(Report)))
    assert result["structured_response"] == Report(text=CLAIM)
    assert mw.runs["run"].outcome == "success"
    assert mw.runs["run"].doubts


def test_a_structured_response_that_is_a_tool_call_is_the_end() -> None:
    model, mw = scripted(EDITS, FAILS, calls("Report", CLAIM, id="c2", text=CLAIM), "Never said."), steered()
    result = built(model, mw, response_format=ToolStrategy(Report)).invoke(QUESTION)
    assert result["structured_response"] == Report(text=CLAIM)
    assert mw.runs["run"].outcome == "success"


# --- with a limit of supersteps


class Before(AgentMiddleware[Any]):
    """A middleware with a superstep of its own before each call."""

    def before_model(self, state: Any, runtime: Any) -> None: ...


class After(AgentMiddleware[Any]):
    """A middleware with supersteps of its own after each call, and before and after the agent."""

    def before_agent(self, state: Any, runtime: Any) -> None: ...
    def after_model(self, state: Any, runtime: Any) -> None: ...
    def after_agent(self, state: Any, runtime: Any) -> None: ...


class One(Before): ...


class Two(After): ...


AROUND: list[tuple[list[Any], list[Any]]] = [
    ([], []),
    ([Before(), After()], []),
    ([], [Before(), After()]),
    ([One(), Two(), After()], [Before()]),
]


def last_text(limit: int, second_look: bool, around: tuple[list[Any], list[Any]], *turns: Said, **options: Any) -> str:
    """The agent's last answer within this many supersteps, or the error's name."""
    before, after = around
    mw = middleware(client(second_look=second_look, **options))
    try:
        agent = built(scripted(*turns), *before, mw, *after)
        return str(agent.invoke(QUESTION, {"recursion_limit": limit})["messages"][-1].text)
    except GraphRecursionError as error:
        return type(error).__name__


@pytest.mark.parametrize("around", AROUND)
def test_an_answer_is_kept_if_the_recursion_limit_leaves_no_room_for_a_second_look(around: Any) -> None:
    plain = [last_text(limit, False, around) for limit in range(6, 46)]
    looked = [last_text(limit, True, around) for limit in range(6, 46)]
    first = plain.index(CLAIM)
    assert set(plain[first:]) == {CLAIM}
    again = looked.index(AGAIN)
    assert (set(looked[first:again]), set(looked[again:])) == ({CLAIM}, {AGAIN})
    assert again - first < 16


def test_the_supersteps_of_earlier_runs_of_a_thread_do_not_count() -> None:
    model = ScriptedModel(script=in_order(*CLAIMED, AGAIN, *CLAIMED, AGAIN))
    agent = built(model, steered(), checkpointer=InMemorySaver())
    for _ in range(2):
        result = agent.invoke(QUESTION, {**thread(), "recursion_limit": 25})
        assert result["messages"][-1].text == AGAIN
