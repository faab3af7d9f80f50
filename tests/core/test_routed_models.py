"""The models that an adapter routes calls to, and a call that is open until its outcome is recorded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from reasonblocks import SteeringSession, StepInput, StepOutcome
from reasonblocks.adapters import InThread, OpenCall, RoutedModels, SteeringFlow, adrive, drive
from reasonblocks.types import Usage
from tests.core.world import client


class Model:
    def __init__(self, name: str) -> None:
        self.name = name


def check(given: object) -> Model:
    if not isinstance(given, Model):
        raise TypeError(f"{given!r} is no model")
    return given


OBJECT = Model("mine")
MODELS = {"SLOW": "strong", "SKIP": "strong", "FAST": "small", "NORMAL": OBJECT}


def routed(models: RoutedModels[Model], state: str | None, build: Callable[[str], object] = Model) -> Model | None:
    return drive(models.model(client().session(), state, MODELS, build))


def test_a_model_object_is_used_as_it_is_and_without_a_route_the_agents_own_stays() -> None:
    assert [routed(RoutedModels(check), state) for state in ("NORMAL", None)] == [OBJECT, None]


def test_an_identifier_is_built_once() -> None:
    models, built = RoutedModels(check), list[str]()

    def build(name: str) -> Model:
        built.append(name)
        return Model(name)

    assert routed(models, "SLOW", build) is routed(models, "SKIP", build)
    routed(models, "FAST", build)
    assert built == [model.name for model in models.built()] == ["strong", "small"]


@pytest.mark.parametrize("build", [lambda name: 3, lambda name: 1 / 0], ids=["no model", "raises"])
def test_a_model_that_cannot_be_built_leaves_the_agents_own(
    build: Callable[[str], object], caplog: pytest.LogCaptureFixture
) -> None:
    assert routed(RoutedModels(check), "SLOW", build) is None
    assert "the model for SLOW cannot be used" in caplog.text


def test_on_an_event_loop_a_model_is_built_in_a_thread() -> None:
    def build(name: str) -> Model:
        return Model(str(threading.current_thread() is threading.main_thread()))

    model = asyncio.run(adrive(RoutedModels(check).model(client().session(), "SLOW", MODELS, build)))
    assert model is not None
    assert model.name == "False"


# ------------------------------------------------------------ flows


def both(session: SteeringSession) -> SteeringFlow[list[int]]:
    """Two steps, with work in a thread between them, which raises."""
    first = yield from session.begin_flow(StepInput())
    session.end_step(first, StepOutcome(model="m"))
    with suppress(ZeroDivisionError):
        yield InThread(lambda: 1 / 0)
    second = yield from session.begin_flow(StepInput())
    yield from session.finish_flow("failure: mine")
    return [first.step, second.step]


def test_a_flow_runs_in_a_thread_and_on_an_event_loop_alike() -> None:
    sessions = [client().session(), client().session()]
    assert drive(both(sessions[0])) == asyncio.run(adrive(both(sessions[1]))) == [0, 1]
    assert [session.outcome for session in sessions] == ["failure: mine", "failure: mine"]


def test_a_flow_raises_what_it_does_not_handle() -> None:
    def fails() -> SteeringFlow[None]:
        yield InThread(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        drive(fails())
    with pytest.raises(ZeroDivisionError):
        asyncio.run(adrive(fails()))


# ------------------------------------------------------------ an open call


def open_call() -> OpenCall:
    session = client().session()
    return OpenCall(session=session, decision=session.begin_step(StepInput()), model="asked")


def answer(tokens: int) -> StepOutcome:
    return StepOutcome(model="asked", usage=Usage(input=tokens, output=0))


def test_an_answer_is_recorded_once_and_no_error_after_it() -> None:
    call = open_call()
    assert [call.record(lambda: answer(7)), call.record(lambda: answer(9))] == [True, True]
    call.failed(ValueError("no"))
    assert (call.session.step_log[0].tokens, call.session.step_log[0].error) == (7, None)


def test_an_error_is_recorded_once_an_attempt() -> None:
    call = open_call()
    for attempts in (1, 1, 2):
        if attempts == 2:
            call.start()
        call.failed(ValueError("no"))
        entry = call.session.step_log[0]
        assert (entry.attempts, entry.error, entry.model_id) == (attempts, "ValueError: no", "asked")


def test_an_answer_that_cannot_be_read_is_a_fault_of_the_run() -> None:
    session = client(strict=False).session()
    call = OpenCall(session=session, decision=session.begin_step(StepInput()), model="asked")
    assert not call.record(lambda: answer(1 // 0))
    assert session.faults == {"recording an answer": 1}


def test_the_time_to_the_first_event_counts_from_the_start() -> None:
    call = open_call()
    assert call.ttft_ms is None
    call.saw_event()
    first = call.ttft_ms
    call.saw_event()
    assert first is not None
    assert 0 <= first == call.ttft_ms <= call.latency_ms
