"""Settings that the SDK fills in for a model by its name are those of the model that is asked."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ModelSettings
from agents.models import get_default_model_settings
from openai.types.shared import Reasoning

from tests.openai_agents.world import Place, fixer, in_turn, looks, place, steering

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
