"""A run that is routed between models that think takes to each of them what it can read."""

from __future__ import annotations

import pytest
from agents import OpenAIChatCompletionsModel

from reasonblocks.testing import Turn, tool_call
from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import Place, every_way, fixer, one_by_one, place, said, steering


def thinking(steps: int) -> list[Turn]:
    """Each turn thinks, says something and looks at a file."""
    calls = [tool_call(f"c{at}", "look", {"path": f"f{at}"}) for at in range(steps)]
    return [*(Turn(reasoning="Hm.", text="I look.", tool_calls=(one,)) for one in calls), said()]


def asked_models(at: Place) -> list[str]:
    return [request.model for request in at.requests]


@every_way
def test_a_routed_model_goes_on_where_another_has_thought(way: str) -> None:
    with place(one_by_one(*thinking(3)), way) as at:
        result = at.run(steering(model_routing={"NORMAL": "strong"}), fixer())
        assert steering_of(result).outcome == "success"
        assert asked_models(at) == ["own", "strong", "strong", "strong"]


@pytest.mark.parametrize("way", ["run/responses", "run_streamed/responses"])
def test_a_routed_model_may_speak_another_api(way: str) -> None:
    with place(one_by_one(*thinking(3)), way) as at:
        strong = OpenAIChatCompletionsModel("strong", at.openai)
        at.run(steering(model_routing={"NORMAL": strong}), fixer())
        assert asked_models(at) == ["own", "strong", "strong", "strong"]


@pytest.mark.parametrize("way", ["run/responses", "run_streamed/responses"])
def test_nothing_of_the_sdks_own_marks_goes_out(way: str) -> None:
    with place(one_by_one(*thinking(3)), way) as at:
        at.run(steering(model_routing={"NORMAL": "strong"}), fixer())
        said_of_own = [
            item for item in at.requests[1].body["input"] if item.get("type") in ("message", "function_call")
        ]
        assert [item.keys() & {"id", "provider_data"} for item in said_of_own] == [set(), set()]
