"""A run that fails or is cancelled leaves what it did; an error of the model is the caller's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from agents import (
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    RunResultStreaming,
    retry_policies,
)
from openai import APIStatusError, BadRequestError, InternalServerError

from reasonblocks import ReasonBlocks
from reasonblocks_openai_agents import SteeredRun, openai_model, openai_run, openai_run_streamed, steering_of
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked, ProviderError
from tests.openai_agents.world import (
    TASK,
    Judged,
    Place,
    awaited,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    one_by_one,
    place,
    read,
    retrying,
    said,
    streamed,
    whole_and_streamed,
)
from tests.steered import steering, unguided

# ------------------------------------------------------------ errors of the model


BROKEN = Turn(error=LookupError("no such thing"))


@every_way
def test_an_error_leaves_the_steps_before_it_as_they_were(way: str) -> None:
    with place(one_by_one(*looks(2)[:2], BROKEN), way) as here, pytest.raises(BadRequestError) as caught:
        here.run(steering(), fixer())
    run = steering_of(caught.value)
    assert [entry.error is None for entry in run.step_log] == [True, True, False]
    assert [entry.difficulty for entry in run.step_log] == [None, 0.4, 0.4]
    assert run.final is None


# ------------------------------------------------------------ tries again


def failing(times: int, then: Turn) -> list[Turn]:
    return [Turn(error=ProviderError("busy", status=503))] * times + [then]


@every_way
def test_a_call_whose_tries_are_used_up_has_failed(way: str) -> None:
    with place(one_by_one(*failing(3, said())), way) as here:
        with pytest.raises(InternalServerError) as caught:
            here.run(steering(), fixer(model_settings=retrying(2)))
        assert len(here.requests) == 3
    run = steering_of(caught.value)
    assert [(entry.attempts, bool(entry.error)) for entry in run.step_log] == [(3, True)]


@whole_and_streamed
def test_the_configurations_settings_may_say_to_try_again(way: str) -> None:
    with place(one_by_one(*failing(1, said())), way) as here:
        run = steering_of(here.run(steering(), fixer(), run_config=here.config(model_settings=retrying(1))))
        assert [entry.attempts for entry in run.step_log] == [2]


@whole_and_streamed
def test_tries_of_a_steered_model_object_are_attempts_of_one_entry(way: str) -> None:
    with place(one_by_one(*failing(2, said())), way) as here:
        rb = steering()
        agent = fixer(model=openai_model(rb, here.model("own")), model_settings=retrying(2))
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


@streamed
@pytest.mark.parametrize("events", [0, 1, 4])
def test_a_stream_that_breaks_is_an_error_of_its_call(events: int, way: str) -> None:
    with place(one_by_one(said("A long answer, in pieces.")), way) as here:
        rb = steering()
        with pytest.raises(ConnectionError, match="torn") as caught:
            here.run(rb, fixer(), run_config=here.config(model=openai_model(rb, torn(here, events))))
    run = steering_of(caught.value)
    assert run.outcome == "failure: ConnectionError"
    assert [(entry.attempts, entry.error) for entry in run.step_log] == [(1, "ConnectionError: torn")]


@streamed
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


# ------------------------------------------------------------ streams that nobody reads to the end


def begun(here: Place, rb: ReasonBlocks, **options: Any) -> RunResultStreaming:
    return openai_run_streamed(rb, fixer(), TASK, run_config=here.config(), **options)


@streamed
def test_a_stream_that_is_left_goes_on_and_is_recorded(way: str) -> None:
    async def leave(here: Place) -> SteeredRun:
        result = begun(here, steering())
        async for _ in result.stream_events():
            break
        assert result.run_loop_task is not None
        await result.run_loop_task
        return steering_of(result)

    with place(in_turn(*looks(3)), way) as here:
        run = here.until(leave(here))
        assert here.guided == [True, True, False, False]
    assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2, 3])
    assert run.final is not None


@streamed
def test_a_run_is_over_when_its_stream_is(way: str) -> None:
    async def outcomes(here: Place) -> list[str | None]:
        result = begun(here, steering())
        before = steering_of(result).outcome
        await read(result)
        return [before, steering_of(result).outcome]

    with place(in_turn(*looks(1)), way) as here:
        assert here.until(outcomes(here)) == [None, "success"]


@streamed
def test_a_stream_tells_what_it_tells_without_steering(way: str) -> None:
    async def told(result: RunResultStreaming) -> list[str]:
        return [type(getattr(event, "data", event)).__name__ async for event in result.stream_events()]

    async def both(here: Place) -> list[list[str]]:
        plain = Runner.run_streamed(fixer(), TASK, run_config=here.config())
        return [await told(begun(here, steering())), await told(plain)]

    with place(in_turn(*looks(2)), way) as here:
        steered, plain = here.until(both(here))
    assert steered == plain


# ------------------------------------------------------------ `result.cancel()`


async def stopped(here: Place, rb: ReasonBlocks, mode: Any) -> RunResultStreaming:
    """A run that is cancelled as soon as its model is heard."""
    result = begun(here, rb)
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            result.cancel(mode=mode)
    return result


@streamed
@pytest.mark.parametrize(("mode", "when_closed"), [("immediate", "failure: abandoned"), ("after_turn", None)])
def test_a_run_that_is_cancelled_at_once_is_abandoned_at_close_and_after_a_turn_it_waits(
    mode: str, when_closed: str | None, way: str
) -> None:
    with place(in_turn(*looks(9)), way) as here:
        rb = steering()
        run = steering_of(here.until(stopped(here, rb, mode)))
        assert (run.outcome, run.final, [entry.step for entry in run.step_log]) == (None, None, [0])
        rb.close()
    assert run.outcome == when_closed


@streamed
def test_a_run_that_was_cancelled_after_a_turn_goes_on(way: str) -> None:
    judged = Judged()

    async def twice(here: Place) -> SteeredRun:
        rb = steering(scorer=judged)
        first = await stopped(here, rb, "after_turn")
        second = await here.arun(rb, fixer(), first.to_state(), snapshot=steering_of(first).snapshot())
        return steering_of(second)

    with place(in_turn(*looks(2)), way) as here:
        run = here.until(twice(here))
        assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [1, 2])
    assert judged.results == [[("f0 is empty", None)], [("f1 is empty", None)], []]


# ------------------------------------------------------------ tasks that are cancelled


class Held:
    """A model that holds its answer to one call until it is let go."""

    def __init__(self, call: int) -> None:
        self.call, self.asked, self.let_go = call, threading.Event(), threading.Event()

    def __call__(self, request: Asked) -> Turn:
        if request.answers == self.call:
            self.asked.set()
            self.let_go.wait(60)
        return looks(9)[request.answers]

    async def reached(self) -> None:
        await asyncio.to_thread(self.asked.wait, 60)


async def cancel(task: asyncio.Task[Any], held: Held) -> None:
    await held.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def time_out(task: asyncio.Task[Any], held: Held) -> None:
    await held.reached()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.001)


def cancelled(way: str, how: Callable[[asyncio.Task[Any], Held], Awaitable[None]]) -> tuple[ReasonBlocks, SteeredRun]:
    held, rb, runs = Held(1), steering(), list[SteeredRun]()

    async def run(here: Place) -> None:
        if way.startswith("run_streamed"):
            result = begun(here, rb)
            runs.append(steering_of(result))
            await read(result)
        try:
            await openai_run(rb, fixer(), TASK, run_config=here.config())
        except asyncio.CancelledError as exc:
            runs.append(steering_of(exc))
            raise

    async def both(here: Place) -> None:
        await how(asyncio.create_task(run(here)), held)

    with place(held, way) as here:
        try:
            here.until(both(here))
        finally:
            held.let_go.set()
    return rb, runs[0]


@awaited
@pytest.mark.parametrize("how", [cancel, time_out])
def test_a_cancelled_run_is_open_until_its_client_is_closed(
    way: str, how: Callable[[asyncio.Task[Any], Held], Awaitable[None]]
) -> None:
    rb, run = cancelled(way, how)
    assert (run.outcome, run.final) == (None, None)
    assert [(entry.attempts, entry.error) for entry in run.step_log] == [(1, None), (1, "CancelledError")]
    rb.close()
    assert run.outcome == "failure: abandoned"


REFUSED = Turn(error=ProviderError("roles must alternate", status=400))


@every_way
def test_a_refused_call_is_tried_again_without_guidance_and_the_run_goes_on_in_the_instructions(way: str) -> None:
    again_if_refused = retrying(1, retry_policies.http_status([400]))
    with place(one_by_one(looks(1)[0], REFUSED, *looks(5, "more")), way) as here:
        run = steering_of(here.run(steering(), fixer(model_settings=again_if_refused)))
        assert here.guided[:3] == [True, True, False]
        refused, again = here.requests[1:3]
        assert again.texts == tuple(map(unguided, refused.texts))
        told = [at for at, entry in enumerate(run.step_log) if at > 1 and entry.intervention_texts]
        assert told, "the run goes on being steered"
        assert all("[REASONBLOCKS]" in here.requests[at + 1].system for at in told)
    assert (run.step_log[1].attempts, run.step_log[1].error) == (2, None)
    assert {entry.placement for entry in run.step_log[2:]} == {"system"}
