"""Steering is a guest: what goes wrong with it never reaches the agent, and switched off it is not there at all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Model, ModelProvider, ModelResponse

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import Unavailable
from reasonblocks.testing import RecordingSink
from reasonblocks_openai_agents import openai_hooks, openai_model, steering_of
from tests.openai_agents.world import (
    Place,
    Result,
    by_model,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    place,
    said,
    steering,
    whole_and_streamed,
)

IDS = re.compile(r'"(?:resp|msg|fc|rs|chatcmpl)_[0-9a-f]+"')


def bodies(here: Place) -> list[str]:
    return [IDS.sub('"id"', json.dumps(asked.body)) for asked in here.requests]


# ------------------------------------------------------------ switched off


def by_run(here: Place, rb: ReasonBlocks) -> Result:
    return here.run(rb, fixer())


def by_model_object(here: Place, rb: ReasonBlocks) -> Result:
    return here.plain(fixer(model=openai_model(rb, here.model("own"))))


def by_hooks(here: Place, rb: ReasonBlocks) -> Result:
    return here.plain(fixer(), hooks=openai_hooks(rb))


def both_together(here: Place, rb: ReasonBlocks) -> Result:
    return here.run(rb, fixer(model=openai_model(rb, here.model("own"))), hooks=openai_hooks(rb))


@every_way
@pytest.mark.parametrize("run", [by_run, by_model_object, by_hooks, both_together])
def test_switched_off_requests_are_untouched(
    run: Callable[[Place, ReasonBlocks], Result], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    sink = RecordingSink()
    rb = steering(sinks=[sink], model_routing={"NORMAL": "strong"}, standing_rules="run")
    with place(in_turn(*looks(2)), way) as here:
        run(here, rb)
        sent = bodies(here)
    with place(in_turn(*looks(2)), way) as here:
        here.plain(fixer())
        assert bodies(here) == sent
    rb.close()
    assert sink.events == []


@whole_and_streamed
def test_switched_off_the_caller_gets_what_the_sdk_gives(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    with place(in_turn(*looks(2)), way) as here:
        run = steering_of(here.run(steering(), fixer()))
    assert (run.outcome, run.step_log) == ("success", [])


# ------------------------------------------------------------ faults


def broken(*_: Any, **__: Any) -> Any:
    raise LookupError("a fault of steering")


class Broken:
    """A backend of any kind that raises."""

    evaluate = search = embed = staticmethod(broken)


class Gone:
    """A backend of any kind that is not there."""

    @staticmethod
    def evaluate(*_: Any) -> Any:
        raise Unavailable("the backend", "it is gone")

    search = evaluate


FAULTS: dict[str, dict[str, Any]] = {
    "scorer": {"scorer": broken},
    "evaluator": {"evaluator": Broken()},
    "store": {"pattern_store": Broken()},
    "transition": {"transition": broken},
    "everything": {"scorer": broken, "evaluator": Broken(), "pattern_store": Broken(), "transition": broken},
    "evaluator gone": {"evaluator": Gone()},
    "store gone": {"pattern_store": Gone()},
}


@every_way
@pytest.mark.parametrize("fault", list(FAULTS))
def test_the_agent_goes_on_whatever_is_broken(fault: str, way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        result = here.run(steering(strict=False, **FAULTS[fault]), fixer())
        assert (result.final_output, len(here.requests)) == ("All seen.", 3)
        run = steering_of(result)
    assert (run.outcome, [entry.step for entry in run.step_log]) == ("success", [0, 1, 2])


@whole_and_streamed
@pytest.mark.parametrize("run", [by_model_object, by_hooks])
def test_the_agent_goes_on_also_without_a_steered_run(run: Callable[[Place, ReasonBlocks], Result], way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        result = run(here, steering(strict=False, **FAULTS["everything"]))
        assert (result.final_output, len(here.requests)) == ("All seen.", 3)


@whole_and_streamed
def test_a_strict_client_raises_what_is_broken(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here, pytest.raises(LookupError, match="a fault of steering"):
        here.run(steering(strict=True, scorer=broken), fixer())


@whole_and_streamed
def test_a_strict_client_never_raises_that_a_backend_is_gone(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        here.run(steering(strict=True, evaluator=Gone(), pattern_store=Gone()), fixer())


class Once(list[Any]):
    """A list that fails the first time it is read: by us."""

    failed = False

    def __iter__(self) -> Iterator[Any]:
        if not self.failed:
            self.failed = True
            raise LookupError("not yet")
        return super().__iter__()


@pytest.mark.parametrize("way", ["run/responses", "run/chat"])
def test_an_answer_that_cannot_be_recorded_reaches_the_agent_as_it_is(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        model = here.model("own")
        ask = model.get_response

        async def get_response(*args: Any, **kwargs: Any) -> ModelResponse:
            response = await ask(*args, **kwargs)
            response.output = Once(response.output)
            return response

        model.get_response = get_response  # type: ignore[method-assign]
        result = here.run(steering(strict=False), fixer(), run_config=here.config(model_provider=Giving(model)))
        assert (result.final_output, len(here.requests)) == ("All seen.", 3)
    assert steering_of(result).outcome == "success"


class Giving(ModelProvider):
    """Gives one model, whatever is asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def get_model(self, model_name: str | None) -> Model:
        return self.model


# ------------------------------------------------------------ closed


@whole_and_streamed
def test_a_client_may_be_closed_twice_and_steers_on(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        rb = steering()
        here.run(rb, fixer())
        rb.close()
        rb.close()
        run = steering_of(here.run(rb, fixer()))
        assert here.guided == [True] * 4
    assert run.outcome == "success"


@whole_and_streamed
def test_a_sink_hears_each_run_from_its_start_to_its_end(way: str) -> None:
    sink = RecordingSink()
    inner = fixer(name="inner", model="inner")
    answer = by_model(own=[call("ask", "a0", input="Look."), said()], inner=looks(1))
    with place(answer, way) as here, steering(sinks=[sink]) as rb:
        outer = steering_of(here.run(rb, fixer(tools=[inner.as_tool("ask", "Asks.")])))
    for run in (outer, *outer.children):
        told = [type(event).__name__ for event in sink.events if event.run_id == run.run_id]
        assert told == ["RunStart", *["StepEvent"] * 3, "RunFinish"]
