"""An error of the model is the caller's: raised as it is, asked once, and kept in its call's entry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import ModelRetrySettings, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, retry_policies
from openai import APIStatusError, BadRequestError, InternalServerError

from reasonblocks.testing import Turn
from reasonblocks.testing.server import ProviderError
from reasonblocks_openai_agents import openai_model, steering_of
from tests.openai_agents.world import (
    Place,
    call,
    every_way,
    fixer,
    looks,
    one_by_one,
    place,
    said,
    steering,
    whole_and_streamed,
)

BROKEN = Turn(error=LookupError("no such thing"))
STREAMED = pytest.mark.parametrize("way", ["run_streamed/responses", "run_streamed/chat"])


@every_way
def test_a_models_error_is_raised_as_it_is_after_one_request(way: str) -> None:
    with place(one_by_one(BROKEN), way) as here:
        with pytest.raises(BadRequestError, match="no such thing") as caught:
            here.run(steering(), fixer())
        assert len(here.requests) == 1
    run = steering_of(caught.value)
    assert run.outcome == "failure: BadRequestError"
    ((entry),) = run.step_log
    assert (entry.attempts, entry.model_id) == (1, "own")
    assert "no such thing" in (entry.error or "")


@every_way
def test_an_error_leaves_the_steps_before_it_as_they_were(way: str) -> None:
    with place(one_by_one(*looks(2)[:2], BROKEN), way) as here, pytest.raises(BadRequestError) as caught:
        here.run(steering(), fixer())
    run = steering_of(caught.value)
    assert [entry.error is None for entry in run.step_log] == [True, True, False]
    assert [entry.difficulty for entry in run.step_log] == [None, 0.4, 0.4]
    assert run.final is None


# ------------------------------------------------------------ tries again


def trying(times: int) -> ModelSettings:
    return ModelSettings(
        retry=ModelRetrySettings(
            max_retries=times,
            backoff={"initial_delay": 0.0, "jitter": False},
            policy=retry_policies.http_status([500, 503]),
        )
    )


def failing(times: int, then: Turn) -> list[Turn]:
    return [Turn(error=ProviderError("busy", status=503))] * times + [then]


@every_way
def test_tries_of_one_call_are_attempts_of_one_entry(way: str) -> None:
    with place(one_by_one(looks(1)[0], *failing(2, said())), way) as here:
        run = steering_of(here.run(steering(), fixer(model_settings=trying(2))))
        assert [entry.attempts for entry in run.step_log] == [1, 3]
        assert [entry.error for entry in run.step_log] == [None, None]
        assert run.outcome == "success"


@every_way
def test_every_try_of_a_call_holds_the_same_guidance(way: str) -> None:
    with place(one_by_one(*failing(2, looks(1)[0]), said()), way) as here:
        here.run(steering(), fixer(model_settings=trying(2)))
        assert here.guided == [True] * 4
        assert len({asked.system for asked in here.requests[:3]}) == 1


@every_way
def test_a_call_whose_tries_are_used_up_has_failed(way: str) -> None:
    with place(one_by_one(*failing(3, said())), way) as here:
        with pytest.raises(InternalServerError) as caught:
            here.run(steering(), fixer(model_settings=trying(2)))
        assert len(here.requests) == 3
    run = steering_of(caught.value)
    assert [(entry.attempts, bool(entry.error)) for entry in run.step_log] == [(3, True)]


@whole_and_streamed
def test_the_configurations_settings_may_say_to_try_again(way: str) -> None:
    with place(one_by_one(*failing(1, said())), way) as here:
        run = steering_of(here.run(steering(), fixer(), run_config=here.config(model_settings=trying(1))))
        assert [entry.attempts for entry in run.step_log] == [2]


@whole_and_streamed
def test_tries_of_a_steered_model_object_are_attempts_of_one_entry(way: str) -> None:
    with place(one_by_one(*failing(2, said())), way) as here:
        rb = steering()
        agent = fixer(model=openai_model(rb, here.model("own")), model_settings=trying(2))
        run = steering_of(here.run(rb, agent))
        assert [entry.attempts for entry in run.step_log] == [3]


@whole_and_streamed
def test_tries_of_the_client_are_the_clients(way: str) -> None:
    with place(one_by_one(*failing(1, said())), way) as here:
        patient = here.openai.with_options(max_retries=1)
        kind: Any = OpenAIResponsesModel if way.endswith("responses") else OpenAIChatCompletionsModel
        run = steering_of(here.run(steering(), fixer(model=kind("own", patient))))
        assert [entry.attempts for entry in run.step_log] == [1]


# ------------------------------------------------------------ an error in the middle of a stream


class Torn:
    """A model whose stream breaks after so many events."""

    def __init__(self, behind: Any, events: int) -> None:
        self.behind, self.events = behind, events

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        left = self.events
        stream = self.behind(*args, **kwargs)
        try:
            async for event in stream:
                if left == 0:
                    raise ConnectionError("torn")
                left -= 1
                yield event
        finally:
            await stream.aclose()


def torn(here: Place, events: int) -> Any:
    model = here.model("own")
    model.stream_response = Torn(model.stream_response, events).stream  # type: ignore[method-assign]
    return model


@STREAMED
@pytest.mark.parametrize("events", [0, 1, 4])
def test_a_stream_that_breaks_is_an_error_of_its_call(events: int, way: str) -> None:
    with place(one_by_one(said("A long answer, in pieces.")), way) as here:
        rb = steering()
        with pytest.raises(ConnectionError, match="torn") as caught:
            here.run(rb, fixer(), run_config=here.config(model=openai_model(rb, torn(here, events))))
    run = steering_of(caught.value)
    assert run.outcome == "failure: ConnectionError"
    assert [(entry.attempts, entry.error) for entry in run.step_log] == [(1, "ConnectionError: torn")]


@STREAMED
def test_a_broken_stream_of_an_unsteered_model_object_is_an_error_of_its_call(way: str) -> None:
    pieces = one_by_one(said("A long answer, in pieces."))
    with place(pieces, way) as here, pytest.raises(ConnectionError, match="torn") as caught:
        here.run(steering(), fixer(model=torn(here, 2)))
    run = steering_of(caught.value)
    assert [(entry.attempts, entry.error) for entry in run.step_log] == [(1, "ConnectionError: torn")]


@every_way
def test_the_next_run_of_an_agent_whose_run_failed_begins_anew(way: str) -> None:
    rb = steering()
    agent = fixer()
    with place(one_by_one(call("look", "c0", path="a"), BROKEN, *looks(1)), way) as here:
        with pytest.raises(APIStatusError):
            here.run(rb, agent)
        run = steering_of(here.run(rb, agent))
        assert (run.outcome, [entry.difficulty for entry in run.step_log]) == ("success", [None, 0.4])
        assert here.guided == [True, True, True, True]
