"""A state's calls go to its model, whichever way the agent names its own; everything else is the agent's model's."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from agents import Model, ModelProvider, ModelSettings, OpenAIChatCompletionsModel
from agents.models import get_default_model_settings
from openai.types.shared import Reasoning

from reasonblocks import Escalate
from reasonblocks.types import Evaluation
from reasonblocks_openai_agents import ask_model, openai_model, steering_of
from reasonblocks_testing import ScriptedEvaluator, Turn, tool_call
from tests.openai_agents.world import (
    Place,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    one_by_one,
    place,
    said,
    whole_and_streamed,
)
from tests.steered import Hostile, speaking, steering

ROUTED = ["own", "strong", "strong", "strong"]
"""Call 0 has no state yet; then it is NORMAL."""


def asked(here: Place) -> list[str]:
    return [request.model for request in here.requests]


@every_way
def test_a_call_that_goes_to_a_mapped_model_object_keeps_its_guidance_and_its_tools(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        run = steering_of(here.run(steering(model_routing={"NORMAL": here.model("strong")}), fixer()))
        assert asked(here) == ROUTED
        assert here.guided == [True, True, False, False]
        assert len({str(request.body.get("tools")) for request in here.requests}) == 1
        assert [entry.model_id for entry in run.step_log] == ROUTED


@every_way
def test_a_model_that_cannot_be_built_is_said_once_and_steering_goes_on(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> Model:
            tried.append(model_name)
            if model_name == "strong":
                raise LookupError("no such model")
            return here.model(str(model_name))

    tried: list[str | None] = []
    with place(in_turn(*looks(3)), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        config = here.config(model_provider=Provider())
        run = steering_of(here.run(steering(model_routing={"NORMAL": "strong"}), fixer(), run_config=config))
        assert asked(here) == ["own"] * 4
        assert here.guided == [True, True, False, False]
    assert run.outcome == "success"
    assert tried.count("strong") == 1
    assert [record.getMessage().count("no such model") for record in caplog.records] == [1]


@every_way
def test_an_agent_that_holds_a_model_object_is_guided_and_not_routed(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        run = steering_of(here.run(steering(model_routing={"NORMAL": "strong"}), fixer(model=here.model("own"))))
        assert asked(here) == ["own"] * 4
        assert here.guided == [True, True, False, False]
        assert [entry.model_id for entry in run.step_log] == ["own"] * 4


@every_way
def test_an_agent_that_holds_a_steered_model_is_routed(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        rb = steering(model_routing={"NORMAL": "strong"})
        model = openai_model(rb, here.model("own"), here.model)
        run = steering_of(here.run(rb, fixer(model=model)))
        assert asked(here) == ROUTED
        assert here.guided == [True, True, False, False]
        assert [entry.model_id for entry in run.step_log] == ROUTED
        assert list(model.runs) == []


@whole_and_streamed
def test_an_agent_of_a_tool_is_routed_by_its_own_state(way: str) -> None:
    inner = fixer(name="inner", model="inner")

    def answer(request: Any) -> Any:
        inside = request.texts[0] == "Look."
        return (looks(2) if inside else [call("ask", input="Look."), said()])[request.answers]

    with place(answer, way) as here:
        agent = fixer(tools=[inner.as_tool("ask", "Asks.")])
        here.run(steering(model_routing={"NORMAL": "strong"}), agent)
        assert asked(here) == ["own", "inner", "strong", "strong", "strong"]


@whole_and_streamed
def test_an_agent_that_a_run_hands_off_to_is_routed_on(way: str) -> None:
    agent = fixer(handoffs=[fixer(name="second", model="other")])
    turns = (call("transfer_to_second", "c0"), call("look", "c1", path="a"), said())
    with place(one_by_one(*turns), way) as here:
        here.run(steering(model_routing={"NORMAL": "strong"}), agent)
        assert asked(here) == ["own", "strong", "strong"]


# ------------------------------------------------------------ settings of a routed model


THINKS, OLDER = "gpt-5", "gpt-4.1"


def efforts(at: Place) -> list[Any]:
    return [(request.body.get("reasoning") or {}).get("effort") for request in at.requests]


def routed(at: Place, to: Any, **options: Any) -> list[Any]:
    at.run(steering(model_routing={"NORMAL": to}), fixer(**options))
    return efforts(at)


def test_a_routed_model_is_not_asked_for_what_only_the_agents_can() -> None:
    with place(in_turn(*looks(1))) as at:
        assert routed(at, OLDER, model=THINKS) == [_effort(THINKS), None]


def test_a_routed_model_object_is_not_either() -> None:
    with place(in_turn(*looks(1))) as at:
        assert routed(at, at.model(OLDER), model=THINKS) == [_effort(THINKS), None]


def test_a_routed_model_gets_what_the_sdk_fills_in_for_it() -> None:
    newer = "gpt-5.1"
    with place(in_turn(*looks(1))) as at:
        assert routed(at, newer, model=THINKS) == [_effort(THINKS), _effort(newer)]


@pytest.mark.parametrize("name", [THINKS, OLDER])
def test_what_the_caller_asks_for_is_asked_of_every_model(name: str) -> None:
    own = ModelSettings(reasoning=Reasoning(effort="high"))
    with place(in_turn(*looks(1))) as at:
        assert routed(at, OLDER, model=name, model_settings=own) == ["high", "high"]


def _effort(model: str) -> Any:
    reasoning = get_default_model_settings(model).reasoning
    assert reasoning is not None
    return reasoning.effort


# ------------------------------------------------------------ more effort for a stuck run

STUCK = [*(call("look", f"c{at}", "I look.", path="same") for at in range(8)), said()]
QUIET: dict[str, Any] = {"evaluator": ScriptedEvaluator([Evaluation()] * 20)}
HARD: dict[str, Any] = {**QUIET, "escalate": Escalate(effort="high", after=0, dwell=2, times=1)}


@every_way
def test_a_stuck_run_gets_more_effort_and_goes_back(way: str) -> None:
    with place(in_turn(*STUCK), way) as at:
        own = ModelSettings(reasoning=Reasoning(effort="low", summary="auto"))
        run = steering_of(at.run(steering(**HARD), fixer(model=THINKS, model_settings=own)))
        bodies = [request.body for request in at.requests]
        asked_for = [body.get("reasoning_effort") or (body.get("reasoning") or {}).get("effort") for body in bodies]
        assert asked_for == ["low"] * 5 + ["high"] * 2 + ["low"] * 2
        assert {body["reasoning"]["summary"] for body in bodies if "reasoning" in body} <= {"auto"}
        assert set(asked(at)) == {THINKS}
    assert [entry.effort for entry in run.step_log] == [None] * 5 + ["high"] * 2 + [None] * 2


def test_an_effort_that_the_sdk_does_not_know_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with place(in_turn(*STUCK)) as at, caplog.at_level(logging.WARNING, "reasonblocks"):
        wrong = Escalate(effort="turbo", after=0, dwell=3)
        run = steering_of(at.run(steering(**QUIET, escalate=wrong), fixer(model=OLDER)))
        assert efforts(at) == [None] * 9
        assert {entry.effort for entry in run.step_log} == {None}
    assert sum("the effort 'turbo' is not asked for any more" in record.getMessage() for record in caplog.records) == 1


# ------------------------------------------------------------ an advisor


@whole_and_streamed
def test_a_model_of_the_sdk_gives_advice(way: str) -> None:
    def answer(request: Any) -> Turn:
        return said("Read the log.") if request.model == "wise" else STUCK[request.answers]

    with place(answer, way) as at:
        rb = steering(
            evaluator=ScriptedEvaluator([Evaluation()] * 4 + [speaking(4)] + [Evaluation()] * 20),
            advisor=ask_model(at.model("wise")),
        )
        run = steering_of(at.run(rb, fixer()))
        asked_for_advice = [request for request in at.requests if request.model == "wise"]
        assert len(asked_for_advice) == 1
        assert not asked_for_advice[0].body.get("tools")
    (entry,) = [entry for entry in run.step_log if entry.advisor_ms is not None]
    assert entry.intervention_texts == (
        'Step 4 looked again. Read what it said. Another model, asked for advice, says: "Read the log."',
    )
    assert (entry.advisor_tokens, run.outcome) == (110, "success")


# ------------------------------------------------------------ reasoning between routed models


def thinking(steps: int) -> list[Turn]:
    """Each turn thinks, says something and looks at a file."""
    calls = [tool_call(f"c{at}", "look", {"path": f"f{at}"}) for at in range(steps)]
    return [*(Turn(reasoning="Hm.", text="I look.", tool_calls=(one,)) for one in calls), said()]


@every_way
def test_a_routed_model_goes_on_where_another_has_thought(way: str) -> None:
    with place(one_by_one(*thinking(3)), way) as at:
        result = at.run(steering(model_routing={"NORMAL": "strong"}), fixer())
        assert steering_of(result).outcome == "success"
        assert asked(at) == ROUTED


@whole_and_streamed
def test_a_routed_model_may_speak_another_api(way: str) -> None:
    with place(one_by_one(*thinking(3)), way) as at:
        strong = OpenAIChatCompletionsModel("strong", at.openai)
        at.run(steering(model_routing={"NORMAL": strong}), fixer())
        assert asked(at) == ROUTED


@whole_and_streamed
def test_nothing_of_the_sdks_own_marks_goes_out(way: str) -> None:
    with place(one_by_one(*thinking(3)), way) as at:
        at.run(steering(model_routing={"NORMAL": "strong"}), fixer())
        said_of_own = [
            item for item in at.requests[1].body["input"] if item.get("type") in ("message", "function_call")
        ]
        assert [item.keys() & {"id", "provider_data"} for item in said_of_own] == [set(), set()]


# ------------------------------------------------------------ mapped models that raise


@every_way
def test_a_run_goes_on_steered_with_the_agents_own_model(way: str, caplog: pytest.LogCaptureFixture) -> None:
    with place(in_turn(*looks(3)), way) as here, caplog.at_level(logging.WARNING, "reasonblocks"):
        run = steering_of(here.run(steering(model_routing={"NORMAL": Hostile()}), fixer()))
        assert {entry.model_id for entry in run.step_log} == {"own"}
        assert here.guided[1]
    assert sum("cannot be used" in record.getMessage() for record in caplog.records) == 1


def test_so_does_a_steered_model() -> None:
    with place(in_turn(*looks(3))) as here:
        model = openai_model(steering(model_routing={"NORMAL": Hostile()}), here.model("own"))
        here.plain(fixer(model=model))
        assert {entry.model_id for entry in model.step_log} == {"own"}
        assert here.guided[1]
