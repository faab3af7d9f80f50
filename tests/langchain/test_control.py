"""The controls in a real agent's run: observing it, stopping it, and changing its texts."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import pytest
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from reasonblocks.events import RunFinish
from reasonblocks.exceptions import ConfigError
from reasonblocks_langchain import SteeringMiddleware, middleware
from reasonblocks_langchain.steering_middleware import NO_CONFIG
from reasonblocks_testing import RecordingSink, Turn, tool_call
from reasonblocks_testing.server import ScriptedServer
from tests.langchain.scripted import ScriptedModel, by_position, calls, in_order
from tests.langchain.world import QUESTION, Way, agent, handing_over, looks, scripted, thread, three_ways
from tests.steered import steering

CALLS = 4
ENOUGH = "Stopped by ReasonBlocks: enough"


class Ends(AgentMiddleware[Any, Any, Any]):
    """A caller's own middleware, which counts the ends of its agent."""

    def __init__(self, name: str = "Ends") -> None:
        super().__init__()
        self._name = name
        self.answers: list[int] = []
        """The number of answers at each end."""

    @property
    def name(self) -> str:
        return self._name

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.answers.append(sum(isinstance(message, AIMessage) for message in state["messages"]))


# --- to observe it only


class Requests(AgentMiddleware[Any, Any, Any]):
    """Keeps the requests, as objects."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.seen: list[Any] = []

    @property
    def name(self) -> str:
        return self._name

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.seen.append(request)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self.seen.append(request)
        return await handler(request)


@three_ways
@pytest.mark.parametrize("by", ["run", "client"])
def test_an_observed_call_gets_the_very_request(way: Way, by: str) -> None:
    strong = scripted(CALLS, model_name="strong")
    rb = steering(model_routing={"NORMAL": strong}, mode="observe" if by == "client" else "steer")
    mw = middleware(rb, mode="observe" if by == "run" else None)
    outer, inner = Requests("outer"), Requests("inner")
    way(agent(scripted(CALLS), outer, mw, inner))
    assert len(outer.seen) == len(inner.seen) == CALLS + 1
    assert all(one is other for one, other in zip(outer.seen, inner.seen, strict=True))
    assert strong.seen == []
    assert {entry.mode for entry in mw.step_log} == {"observe"}
    assert any(entry.withheld_texts for entry in mw.step_log)
    assert any(entry.withheld_route for entry in mw.step_log)


SIGNED: list[Any] = [{"type": "thinking", "thinking": "Hm.", "signature": "abc"}, {"type": "text", "text": "Yes."}]


def bodies(**options: Any) -> list[Any]:
    """The bodies of the requests that Anthropic's own client sends, in a conversation that another model began."""
    anthropic = pytest.importorskip("langchain_anthropic")
    turns = [Turn(text=f"I look at {at}.", tool_calls=(tool_call(f"c{at}", "look", {"path": "f"}),)) for at in range(2)]
    left = iter([*turns, Turn(text="Done.")])
    said = AIMessage(SIGNED, response_metadata={"model_name": "claude-other"})
    with ScriptedServer(lambda asked: next(left)) as server:
        chat = anthropic.ChatAnthropic(
            model="claude-scripted", api_key="none", base_url=server.anthropic_url, max_retries=0, max_tokens=99
        )
        mw = middleware(steering(placement="system", model_routing={"NORMAL": chat}), **options)
        agent(chat, mw).invoke({"messages": [("user", "Is it?"), said, ("user", "Fix the failing tests.")]})
        return [json.dumps(request.body) for request in server.requests]


def test_anthropics_client_sends_the_same_bytes_as_without_us(monkeypatch: pytest.MonkeyPatch) -> None:
    observed, steered = bodies(mode="observe"), bodies()
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    assert observed == bodies()
    assert "cache_control" in str(steered)
    assert "signature" not in str(steered)


# --- to stop it


def stopping(after: int = 2, **options: Any) -> Any:
    return steering(stop_when=lambda run: "enough" if run.trace.state.calls >= after else None, **options)


@three_ways
def test_a_stopped_run_ends_the_agent_with_a_last_message_that_gives_the_reason(way: Way) -> None:
    sink, ends, model = RecordingSink(), Ends(), scripted(CALLS)
    mw = middleware(stopping(sinks=[sink]), run_id="run")
    result = way(mw.watch(agent(model, ends, mw)))
    mw.close()
    assert result["messages"][-1].text == ENOUGH
    assert isinstance(result["messages"][-1], AIMessage)
    assert result["messages"][-1].response_metadata == {"reasonblocks": {"stopped": "enough"}}
    assert len(model.seen) == 2
    assert ends.answers == [3]
    assert [entry.step for entry in mw.step_log] == [0, 1]
    assert mw.runs["run"].outcome == "stopped: enough"
    assert mw.final is not None
    assert (mw.final.step, mw.final.stop) == (2, "enough")
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == ["stopped: enough"]


def test_a_question_after_a_stop_is_a_new_run() -> None:
    model = ScriptedModel(script=in_order(*looks(2)[:2], *looks(2)))
    mw = middleware(stopping(), run_id="run")
    steered = agent(model, mw, checkpointer=InMemorySaver())
    steered.invoke(QUESTION, thread())
    result = steered.invoke({"messages": [("user", "Go on.")]}, thread())
    assert result["messages"][-1].text == ENOUGH
    first, second = mw.runs.values()
    assert (first.outcome, second.outcome) == ("stopped: enough", "stopped: enough")
    assert second.run.task == "Go on."
    assert [entry.step for entry in second.step_log] == [0, 1]
    assert [entry.difficulty for entry in second.step_log] == [entry.difficulty for entry in first.step_log]
    assert [entry.thought_preview for entry in second.step_log] == ["", "I look at file 0."]


def test_a_run_that_another_process_stopped_is_not_a_success_here() -> None:
    saver, options = InMemorySaver(), {"interrupt_before": ["SteeringMiddleware.after_agent"]}
    one, two = middleware(stopping(), run_id="run"), middleware(stopping(), run_id="run")
    agent(scripted(CALLS), one, checkpointer=saver, **options).invoke(QUESTION, thread())
    result = agent(scripted(CALLS), two, checkpointer=saver).invoke(None, thread())
    assert result["messages"][-1].text == ENOUGH
    assert [mw.runs["run"].outcome for mw in (one, two)] == ["stopped: enough"] * 2


def test_a_stopped_agent_within_a_tool_answers_its_caller() -> None:
    mw = middleware(steering(), run_id="outer")
    inner = middleware(stopping(), run_id="inner")
    child = agent(scripted(CALLS), inner)

    model = ScriptedModel(script=by_position(calls("delegate", "Yours.", id="d", task="look"), "Done."))
    result = mw.watch(agent(model, mw, tools=(handing_over(child),))).invoke(QUESTION)
    assert [message.text for message in result["messages"][-2:]] == [ENOUGH, "Done."]
    assert (mw.runs["outer"].outcome, inner.runs["inner"].outcome) == ("success", "stopped: enough")


def test_an_agent_with_a_response_format_stops_without_a_response() -> None:
    mw = middleware(stopping())
    schema: dict[str, Any] = {"title": "Report", "type": "object", "properties": {"text": {"type": "string"}}}
    result = agent(scripted(CALLS), mw, response_format=schema).invoke(QUESTION)
    assert (result["messages"][-1].text, result.get("structured_response")) == (ENOUGH, None)


class Barred(AgentMiddleware[Any]):
    """Ends an agent before its first call, without a message."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"jump_to": "end"}


def test_one_of_two_middlewares_stops_the_agent_and_both_runs() -> None:
    one, two = middleware(steering(), agent_name="one"), middleware(stopping(), agent_name="two")
    model = scripted(CALLS)
    for around in ((one, two), (two, one)):
        model.seen.clear()
        assert agent(model, *around).invoke(QUESTION)["messages"][-1].text == ENOUGH
        assert len(model.seen) == 2
    for mw in (one, two):
        assert [run.outcome for run in mw.runs.values()] == ["stopped: enough"] * 2


def test_a_stop_of_an_earlier_run_is_not_that_of_the_next() -> None:
    """The stop is still the thread's newest answer."""
    saver, mw = InMemorySaver(), middleware(steering(), run_id="next")
    agent(scripted(CALLS), middleware(stopping()), checkpointer=saver).invoke(QUESTION, thread())
    agent(scripted(CALLS), mw, Barred(), checkpointer=saver).invoke(QUESTION, thread())
    assert mw.runs["next"].outcome == "success"


class Straight(SteeringMiddleware):
    """As an agent was built before there were jumps: its hooks return to the next node only."""

    def before_model(self, state: Any, runtime: Any, config: RunnableConfig = NO_CONFIG) -> Any:
        return super().before_model(state, runtime, config)

    async def abefore_model(self, state: Any, runtime: Any, config: RunnableConfig = NO_CONFIG) -> Any:
        return await super().abefore_model(state, runtime, config)

    def after_agent(self, state: Any, runtime: Any, config: RunnableConfig = NO_CONFIG) -> Any:
        return super().after_agent(state, runtime, config)

    async def aafter_agent(self, state: Any, runtime: Any, config: RunnableConfig = NO_CONFIG) -> Any:
        return await super().aafter_agent(state, runtime, config)


def edges(steered: CompiledStateGraph[Any, Any, Any, Any]) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in steered.get_graph().edges}


@pytest.mark.parametrize("node", ["before_model", "after_agent"])
def test_a_checkpoint_of_an_agent_without_jumps_is_resumed(node: str) -> None:
    saver, rb = InMemorySaver(), stopping(CALLS + 5)
    new = middleware(rb, run_id="run")
    old = Straight(new._lifecycle)
    before: dict[str, Any] = {"checkpointer": saver, "interrupt_before": [f"SteeringMiddleware.{node}"]}
    earlier, later = agent(scripted(CALLS), old, **before), agent(scripted(CALLS), new, **before)
    assert set(earlier.get_graph().nodes) == set(later.get_graph().nodes)
    assert edges(earlier) < edges(later)
    earlier.invoke(QUESTION, thread())
    for turn in range(CALLS + 2):
        if later.get_state(thread()).next:
            (earlier, later)[turn % 2].invoke(None, thread())
    assert later.get_state(thread()).values["messages"][-1].text == "All seen."
    assert [entry.step for entry in new.step_log] == list(range(CALLS + 1))
    assert new.runs["run"].outcome == "success"


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "watch"},
        {"interrupt_when": "bored"},
        {"interrupt_when": 3},
        {"placement": "nowhere"},
        {"task_profile": "cooking"},
    ],
)
def test_wrong_values_are_refused_where_they_are_given(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        middleware(steering(strict=False), **wrong)


# --- who does not use it


def test_a_failure_that_was_marked_stays_after_the_run_was_resumed() -> None:
    def breaks(path: str) -> str:
        """Reads a file, and fails once."""
        if not failed:
            failed.append(path)
            raise ValueError("no disk")
        return "text"

    failed: list[str] = []
    model = ScriptedModel(script=in_order(calls("breaks", path="a"), AIMessage("Done.")))
    mw = middleware(steering(), run_id="run")
    config = thread()
    made = mw.watch(agent(model, mw, tools=[breaks], checkpointer=InMemorySaver()))
    with pytest.raises(ValueError, match="no disk"):
        made.invoke(QUESTION, config)
    mw.mark_failure("customer rejected it")
    made.invoke(None, config)
    assert mw.runs["run"].outcome == "failure: customer rejected it"


@pytest.mark.parametrize("looks", [True, False])
def test_the_supersteps_that_are_left_are_asked_for_only_for_a_second_look(looks: bool) -> None:
    mw = middleware(steering(second_look=looks))
    assert ("reasonblocks_steps_left" in get_type_hints(mw.state_schema, include_extras=True)) is looks
