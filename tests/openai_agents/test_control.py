"""Observed runs send what they send without us; a stopped run calls no model again; a text can be replaced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIResponsesModel,
    SQLiteSession,
    UserError,
    retry_policies,
)
from pydantic import BaseModel

from reasonblocks.exceptions import ConfigError, RunStopped
from reasonblocks_openai_agents import openai_hooks, openai_model, openai_run_streamed, steering_of
from reasonblocks_testing import ScriptedReasonBlocks, Turn
from reasonblocks_testing.server import Answer
from tests.openai_agents.other_process import alone, approved
from tests.openai_agents.world import (
    TASK,
    Judged,
    Place,
    as_tool,
    asking,
    by_model,
    call,
    crash,
    every_way,
    family,
    fixer,
    in_turn,
    look,
    looks,
    named,
    one_by_one,
    place,
    retrying,
    said,
    streamed,
    whole_and_streamed,
)
from tests.steered import steering, unguided

OFTEN: dict[str, Any] = {"model_routing": {"NORMAL": "strong"}, "standing_rules": "run", "second_look": "unchecked"}
"""Options with which steering would touch every request."""
Client = ScriptedReasonBlocks | None
"""None: the SDK's own `Runner`."""


def observing(**options: Any) -> ScriptedReasonBlocks:
    return steering(**{**OFTEN, "mode": "observe", "stop_when": lambda run: "enough", **options})


def run(here: Place, rb: Client, agent: Agent[Any], asked: Any = TASK, **options: Any) -> Any:
    return here.plain(agent, asked, **options) if rb is None else here.run(rb, agent, asked, **options)


# ------------------------------------------------------------ what is observed


class Verdict(BaseModel):
    fixed: bool


def thinking() -> list[Turn]:
    """Turns with reasoning, which a routed request of another model has to leave out."""
    return [Turn(text=turn.text, tool_calls=turn.tool_calls, reasoning="I think.") for turn in looks(3)]


def in_session(here: Place, rb: Client) -> None:
    session = SQLiteSession("session")
    for question in (TASK, "And the docs?"):
        run(here, rb, fixer(), question, session=session)
    session.close()


def handed_off(here: Place, rb: Client) -> None:
    run(here, rb, fixer(handoffs=[fixer(name="second", instructions="You go on.", model="other")]))


def within(here: Place, rb: Client) -> None:
    inner = named("inner", look)
    run(here, rb, named("outer", as_tool(named("middle", as_tool(inner))), crash))


def of_a_servers_conversation(here: Place, rb: Client) -> None:
    run(here, rb, fixer(), conversation_id="conv")
    run(here, rb, fixer(), auto_previous_response_id=True)


def waiting(here: Place, rb: Client) -> None:
    """A run that goes on after an approval, as in another process."""
    agent = alone()
    result, options = run(here, rb, agent), {}
    while result.interruptions:
        if rb is not None:
            options = {"snapshot": json.loads(json.dumps(steering_of(result).snapshot()))}
        state = here.until(approved(agent, json.loads(json.dumps(result.to_state().to_json()))))
        result = run(here, rb, agent, state, **options)


OUTER = [asking("middle", "a"), call("crash", "c", path="x"), said()]
RUNS: dict[str, tuple[Callable[[], Answer], Callable[[Place, Client], object]]] = {
    "reasoning": (lambda: in_turn(*thinking()), lambda here, rb: run(here, rb, fixer())),
    "settings": (lambda: in_turn(*looks(2)), lambda here, rb: run(here, rb, fixer(model="gpt-5"))),
    "session": (lambda: one_by_one(*looks(2), *looks(2, "again")), in_session),
    "handoff": (lambda: one_by_one(call("transfer_to_second", "h0"), *looks(2)), handed_off),
    "agents as tools": (lambda: by_model(outer=OUTER, middle=[asking("inner", "b"), said()], inner=looks(2)), within),
    "an error": (
        lambda: in_turn(call("crash", "c", path="x"), said()),
        lambda here, rb: run(here, rb, fixer(tools=[crash])),
    ),
    "an approval": (lambda: in_turn(*looks(3)), waiting),
    "structured": (
        lambda: in_turn(*looks(1)[:1], said('{"fixed": true}')),
        lambda here, rb: run(here, rb, fixer(output_type=Verdict)),
    ),
}


def sent(answer: Answer, way: str, work: Callable[[Place, Client], object], rb: Client) -> list[str]:
    with place(answer, way) as here:
        work(here, rb)
        return here.bodies


@every_way
@pytest.mark.parametrize("name", RUNS)
def test_the_requests_of_an_observed_run_are_those_without_us(name: str, way: str) -> None:
    answer, work = RUNS[name]
    plain = sent(answer(), way, work, None)
    assert len(plain) > 1
    for placement in ("tail", "system"):
        assert sent(answer(), way, work, observing(placement=placement)) == plain


@whole_and_streamed
def test_the_requests_of_an_observed_conversation_of_the_server_are_those_without_us(way: str) -> None:
    turns = (*looks(2), *looks(2, "again"))
    plain = sent(one_by_one(*turns), way, of_a_servers_conversation, None)
    assert sent(one_by_one(*turns), way, of_a_servers_conversation, observing()) == plain


@every_way
def test_the_requests_of_an_observed_model_object_are_those_without_us(way: str) -> None:
    def work(here: Place, rb: Client) -> None:
        own = here.model("own")
        here.plain(fixer(model=own if rb is None else openai_model(rb, own, here.model)))

    plain = sent(in_turn(*thinking()), way, work, None)
    assert sent(in_turn(*thinking()), way, work, observing()) == plain


class Official(OpenAIResponsesModel):
    """A model of OpenAI's own server, to whose requests the SDK adds a cache key."""

    def _supports_default_prompt_cache_key(self) -> bool:
        return True


@pytest.mark.parametrize("made", [True, False], ids=["an object", "an identifier"])
def test_an_observed_model_object_gets_the_cache_key_of_the_model_behind_it(made: bool) -> None:
    def work(here: Place, rb: Client) -> None:
        def own(name: str) -> Official:
            return Official(name, here.openai)

        steered = None if rb is None else openai_model(rb, own("own") if made else "own", own)
        here.plain(fixer(model=steered or own("own")), run_config=here.config(group_id="group"))

    plain = sent(in_turn(*looks(1)), "run/responses", work, None)
    assert "prompt_cache_key" in plain[0]
    assert sent(in_turn(*looks(1)), "run/responses", work, observing()) == plain


@whole_and_streamed
def test_hooks_record_what_they_withhold_and_the_end_that_they_cannot_bring(way: str) -> None:
    hooks = openai_hooks(steering(**OFTEN, stop_when=lambda run: "enough"))
    with place(in_turn(*looks(2)), way) as here:
        here.plain(fixer(), hooks=hooks)
        assert not any(here.guided)
    (recorded,) = hooks.runs.values()
    assert [entry.mode for entry in recorded.step_log] == ["observe"] * 3
    assert [bool(entry.withheld_texts) for entry in recorded.step_log] == [True, True, True]
    assert [entry.withheld_route for entry in recorded.step_log] == [None, "NORMAL", "NORMAL"]
    assert [entry.withheld_stop for entry in recorded.step_log] == [None, "enough", "enough"]
    assert recorded.outcome == "success"


def test_hooks_that_shall_steer_are_refused() -> None:
    with pytest.raises(ConfigError, match="mode"):
        openai_hooks(steering(), mode="steer")


# ------------------------------------------------------------ what is stopped


def enough(calls: int, agent: str = "") -> Callable[[Any], str | None]:
    """Return a reason before call `calls` of the runs of that agent, or of all."""
    return lambda run: "enough" if len(run.step_log) > calls and agent in ("", run.run.agent_name) else None


@every_way
def test_a_stopped_run_raises_and_is_found_by_its_error(way: str) -> None:
    with place(in_turn(*looks(5)), way) as here, pytest.raises(RunStopped, match="enough") as caught:
        here.run(steering(stop_when=enough(2)), fixer(), run_id="run-1")
    stopped = steering_of(caught.value)
    assert (caught.value.reason, caught.value.run_id, stopped.outcome) == ("enough", "run-1", "stopped: enough")


@streamed
def test_the_stream_of_a_stopped_run_raises_at_its_end_and_leaves_nothing(way: str) -> None:
    async def work(here: Place) -> tuple[list[str], set[Any]]:
        async def read() -> None:
            async for event in result.stream_events():
                heard.append(getattr(event, "name", event.type))

        heard: list[str] = []
        result = openai_run_streamed(steering(stop_when=enough(2)), fixer(), TASK, run_config=here.config())
        with pytest.raises(RunStopped):
            await read()
        assert result.is_complete
        assert isinstance(result.run_loop_exception, RunStopped)
        assert steering_of(result).outcome == "stopped: enough"
        return heard, asyncio.all_tasks() - {asyncio.current_task()}

    with place(in_turn(*looks(5)), way) as here:
        heard, left = here.until(work(here))
        assert (heard.count("tool_output"), left, len(here.requests)) == (2, set(), 2)


@streamed
def test_a_stopped_run_ends_also_when_nobody_reads_its_stream(way: str) -> None:
    async def work(here: Place) -> Any:
        result = openai_run_streamed(steering(stop_when=enough(2)), fixer(), TASK, run_config=here.config())
        assert result.run_loop_task is not None
        await asyncio.wait([result.run_loop_task])
        assert isinstance(result.run_loop_exception, RunStopped)
        return steering_of(result).outcome

    with place(in_turn(*looks(5)), way) as here:
        assert here.until(work(here)) == "stopped: enough"


@whole_and_streamed
@pytest.mark.parametrize("chain", [{"conversation_id": "conv"}, {"auto_previous_response_id": True}])
def test_a_servers_conversation_is_stopped(chain: dict[str, Any], way: str) -> None:
    with place(in_turn(*looks(5)), way) as here, pytest.raises(RunStopped):
        here.run(steering(stop_when=enough(2)), fixer(), **chain)
    assert len(here.requests) == 2


@whole_and_streamed
def test_the_session_of_a_stopped_run_has_its_steps(way: str) -> None:
    session = SQLiteSession("session")
    with place(in_turn(*looks(5)), way) as here:
        with pytest.raises(RunStopped):
            here.run(steering(stop_when=enough(2)), fixer(), session=session)
        kept: list[Any] = here.until(session.get_items())
    session.close()
    assert [item.get("type", item.get("role")) for item in kept] == [
        "user",
        *["message", "function_call", "function_call_output"] * 2,
    ]


@every_way
def test_a_stopped_agent_of_a_tool_is_a_failed_call_of_the_run_that_goes_on(way: str) -> None:
    judged = Judged()
    answer = by_model(outer=[asking("inner", "a"), said()], inner=looks(5))
    with place(answer, way) as here:
        rb = steering(stop_when=enough(2, "inner"), scorer=judged)
        outer = steering_of(here.run(rb, named("outer", as_tool(named("inner", look)))))
        assert [asked.model for asked in here.requests] == ["outer", "inner", "inner", "outer"]
    assert family(outer) == ("outer", "success", [("inner", "stopped: enough", [])])
    assert [is_error for step in judged.results for _, is_error in step] == [None, None, True]


@whole_and_streamed
def test_the_tool_of_a_stopped_agent_can_word_why(way: str) -> None:
    def worded(context: Any, error: Exception) -> str:
        return f"Stopped: {error.reason}" if isinstance(error, RunStopped) else "Broken."

    answer = by_model(outer=[asking("inner", "a"), said()], inner=looks(5))
    tool = as_tool(named("inner", look), failure_error_function=worded)
    with place(answer, way) as here:
        here.run(steering(stop_when=enough(2, "inner")), named("outer", tool))
        assert list(map(unguided, here.requests[-1].tool_outputs.values())) == ["Stopped: enough"]


@whole_and_streamed
def test_a_stopped_agent_ends_the_whole_run_where_its_tool_lets_errors_pass(way: str) -> None:
    answer = by_model(outer=[asking("inner", "a"), said()], inner=looks(5))
    tool = as_tool(named("inner", look), failure_error_function=None)
    with place(answer, way) as here, pytest.raises((RunStopped, UserError)) as caught:
        here.run(steering(stop_when=enough(2, "inner")), named("outer", tool))
    outer = steering_of(caught.value)
    assert family(outer) == ("outer", f"failure: {type(caught.value).__name__}", [("inner", "stopped: enough", [])])


@every_way
def test_a_stopped_run_of_a_model_object_raises_through_the_sdk_whatever_it_tries_again(way: str) -> None:
    with place(in_turn(*looks(5)), way) as here:
        model = openai_model(steering(stop_when=enough(2)), here.model("own"), run_id="run")
        with pytest.raises(RunStopped) as caught:
            here.plain(fixer(model=model, model_settings=retrying(3, retry_policies.any(lambda context: True))))
        assert len(here.requests) == 2
    assert (caught.value.reason, list(model.runs)) == ("enough", ["run"])
    assert model.runs["run"].outcome == "stopped: enough"
    assert [entry.step for entry in model.step_log] == [0, 1]


@whole_and_streamed
def test_what_a_stopped_run_leaves_can_be_asked_again_as_another_run(way: str) -> None:
    answered = [{"role": "user", "content": TASK}, {"type": "function_call", "call_id": "c0", "name": "look"}]
    items = [{**item, "arguments": '{"path": "a"}'} if "name" in item else item for item in answered]
    items.append({"type": "function_call_output", "call_id": "c0", "output": "a is empty"})
    with place(one_by_one(*looks(1), said()), way) as here:
        model = openai_model(steering(stop_when=enough(1)), here.model("own"), run_id="run")
        with pytest.raises(RunStopped):
            here.plain(fixer(model=model))
        assert here.plain(fixer(model=model), items).final_output == "All seen."
    assert [one.outcome for one in model.runs.values()] == ["stopped: enough", "success"]
