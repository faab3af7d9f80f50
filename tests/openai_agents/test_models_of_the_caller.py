"""A model of the caller's own is asked as the SDK asks it, and says itself what may be tried again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from agents import Model, ModelProvider, ModelRetryAdviceRequest, ModelRetrySettings, ModelSettings, retry_policies
from agents.items import ModelResponse
from agents.retry import ModelRetryAdvice

from reasonblocks_openai_agents import openai_model
from tests.openai_agents.world import fixer, in_turn, looks, place, said, steering, whole_and_streamed

STREAMED = "run_streamed/responses"


class Wrapped(Model):
    """Names its arguments as it likes, which the SDK allows where it gives them by position."""

    def __init__(self, behind: Model) -> None:
        self.behind = behind

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self.behind.get_response(*args, **kwargs)

    def stream_response(self, base: Any, items: Any, settings: Any, *rest: Any, **others: Any) -> AsyncIterator[Any]:  # type: ignore[override]  # the point of it
        return self.behind.stream_response(base, items, settings, *rest, **others)


class Wraps(ModelProvider):
    def __init__(self, behind: ModelProvider) -> None:
        self.behind = behind

    def get_model(self, model_name: str | None) -> Model:
        return Wrapped(self.behind.get_model(model_name))


def test_a_model_of_the_callers_provider_may_name_its_arguments_as_it_likes() -> None:
    with place(in_turn(*looks(1)), STREAMED) as at:
        at.run(steering(), fixer(), run_config=at.config(model_provider=Wraps(at.provider)))
        assert at.guided == [True, True]


def test_a_model_behind_a_steered_one_may_name_its_arguments_as_it_likes() -> None:
    with place(in_turn(*looks(1)), STREAMED) as at:
        at.run(steering(), fixer(model=openai_model(steering(), Wrapped(at.model("own")))))
        assert at.guided == [True, True]


# ------------------------------------------------------------ what may be tried again


class Advising(Wrapped):
    """Says that whatever failed may be tried again."""

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        return self.behind.stream_response(*args, **kwargs)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return ModelRetryAdvice(suggested=True, retry_after=0.0, replay_safety="safe")


RETRYING = ModelSettings(
    retry=ModelRetrySettings(
        max_retries=1, backoff={"initial_delay": 0.0, "jitter": False}, policy=retry_policies.provider_suggested()
    )
)


@whole_and_streamed
@pytest.mark.parametrize("off", ["0", "1"])
def test_what_a_model_says_of_trying_again_counts(off: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", off)
    with place(in_turn(replace(said(), failures=1)), way) as at:
        model = openai_model(steering(), Advising(at.model("own")))
        at.plain(fixer(model=model, model_settings=RETRYING))
        assert len(at.requests) == 2
