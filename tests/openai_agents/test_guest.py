"""Steering is a guest: what goes wrong with it never reaches the agent, and switched off it is not there at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from agents import ModelResponse, UserError
from agents.run_config import CallModelData, ModelInputData, ToolErrorFormatterArgs

from reasonblocks import ReasonBlocks
from reasonblocks_openai_agents import openai_hooks, openai_model, steering_of
from reasonblocks_testing import RecordingSink
from tests.openai_agents.world import (
    PROMPT,
    Giving,
    Judged,
    Place,
    Result,
    by_model,
    call,
    crash,
    every_way,
    fixer,
    in_turn,
    looks,
    one_by_one,
    place,
    said,
    since,
    whole_and_streamed,
)
from tests.steered import steering, unguided

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
        sent = here.bodies
    with place(in_turn(*looks(2)), way) as here:
        here.plain(fixer())
        assert here.bodies == sent
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


@whole_and_streamed
@pytest.mark.parametrize("run", [by_run, by_model_object, by_hooks])
def test_the_agent_goes_on_whatever_is_broken(run: Callable[[Place, ReasonBlocks], Result], way: str) -> None:
    with place(in_turn(*looks(2)), way) as here:
        faults = Broken()
        rb = steering(strict=False, scorer=broken, transition=broken, evaluator=faults, pattern_store=faults)
        result = run(here, rb)
        assert (result.final_output, len(here.requests)) == ("All seen.", 3)


@whole_and_streamed
def test_a_strict_client_raises_what_is_broken(way: str) -> None:
    with place(in_turn(*looks(2)), way) as here, pytest.raises(LookupError, match="a fault of steering"):
        here.run(steering(strict=True, scorer=broken), fixer())


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


# ------------------------------------------------------------ filters, formatters and configurations of the caller


DICTIONARY = since(20, "takes no dictionary as configuration")
Filter = Callable[[CallModelData[Any]], Any]


def shouting(data: CallModelData[Any]) -> ModelInputData:
    return ModelInputData(input=data.model_data.input[-1:], instructions=f"{data.model_data.instructions}!")


async def shouting_later(data: CallModelData[Any]) -> ModelInputData:
    return shouting(data)


def shouting_in_place(data: CallModelData[Any]) -> ModelInputData:
    del data.model_data.input[:-1]
    data.model_data.instructions = f"{data.model_data.instructions}!"
    return data.model_data


@whole_and_streamed
@pytest.mark.parametrize("own", [shouting, shouting_later, shouting_in_place])
def test_the_callers_filter_goes_first_and_guidance_after_it(own: Filter, way: str) -> None:
    with place(one_by_one(*looks(1)), way) as here:
        rb = steering(placement="system")
        here.run(rb, fixer(), run_config=here.config(call_model_input_filter=own))
        first, second = here.requests
    assert first.system.startswith(f"{PROMPT}!\n\n[REASONBLOCKS]")
    assert (len(first.texts), second.texts) == (1, ("f0 is empty",))


@whole_and_streamed
def test_a_step_is_judged_by_what_happened_not_by_what_the_callers_filter_leaves(way: str) -> None:
    def nothing_left(data: CallModelData[Any]) -> ModelInputData:
        data.model_data.input[:] = [{"role": "user", "content": "Go on."}]
        return data.model_data

    judged = Judged()
    with place(one_by_one(*looks(2)), way) as here:
        here.run(steering(scorer=judged), fixer(), run_config=here.config(call_model_input_filter=nothing_left))
    assert judged.results == [[("f0 is empty", None)], [("f1 is empty", None)], []]


def raising(data: CallModelData[Any]) -> ModelInputData:
    raise LookupError("the caller's own")


@every_way
def test_what_the_callers_filter_raises_is_the_callers(way: str) -> None:
    with place(in_turn(said()), way) as here:
        with pytest.raises(LookupError, match="the caller's own") as caught:
            here.run(steering(), fixer(), run_config=here.config(call_model_input_filter=raising))
        assert here.requests == []
        assert steering_of(caught.value).outcome == "failure: LookupError"
        assert steering_of(caught.value).step_log == []


@whole_and_streamed
@pytest.mark.parametrize("nonsense", [None, "text", {"input": []}])
def test_a_filter_that_gives_nonsense_is_refused_by_the_sdk(nonsense: object, way: str) -> None:
    with place(in_turn(said()), way) as here, pytest.raises(UserError, match="must return a ModelInputData"):
        here.run(steering(), fixer(), run_config=here.config(call_model_input_filter=lambda data: nonsense))


@since(21, "asks the formatter of calls that are not approved only")
@whole_and_streamed
def test_the_callers_error_formatter_words_the_error(way: str) -> None:
    asked: list[str] = []

    def formatted(args: ToolErrorFormatterArgs[Any]) -> str:
        asked.append(args.call_id)
        return "It is broken."

    with place(in_turn(call("crash", "c0", path="a"), said()), way) as here:
        config = here.config(tool_error_formatter=formatted)
        result = here.run(steering(), fixer(tools=[crash]), run_config=config)
        assert steering_of(result).outcome == "success"
        assert (unguided(here.requests[1].texts[-1]), asked) == ("It is broken.", ["c0"])


@DICTIONARY
@every_way
def test_a_configuration_may_be_a_dictionary(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        config = {"model_provider": here.provider, "tracing_disabled": True, "model": "other"}
        result = here.run(steering(), fixer(), run_config=config)
        assert here.guided == [True, True]
        assert [entry.model_id for entry in steering_of(result).step_log] == ["other", "other"]
        assert set(config) == {"model_provider", "tracing_disabled", "model"}


@whole_and_streamed
def test_the_configurations_model_is_the_agents_own(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        result = here.run(steering(), fixer(), run_config=here.config(model="other"))
        assert [asked.model for asked in here.requests] == ["other", "other"]
        assert [entry.model_id for entry in steering_of(result).step_log] == ["other", "other"]
        assert steering_of(result).session.run.model == "other"


@whole_and_streamed
def test_a_model_object_in_the_configuration_is_steered(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        result = here.run(steering(), fixer(), run_config=here.config(model=here.model("other")))
        assert [asked.model for asked in here.requests] == ["other", "other"]
        assert here.guided == [True, True]
        assert [entry.model_id for entry in steering_of(result).step_log] == ["other", "other"]
        assert [entry.tokens for entry in steering_of(result).step_log] == [110, 110]


def test_the_callers_configuration_is_not_changed() -> None:
    with place(one_by_one(*looks(1))) as here:
        config = here.config(call_model_input_filter=shouting)
        before = dict(vars(config))
        here.run(steering(), fixer(), run_config=config)
        assert vars(config) == before


@pytest.mark.parametrize("config", [pytest.param({"no_such": 1}, marks=DICTIONARY), 7, "text"])
def test_a_wrong_configuration_is_refused_as_the_sdk_refuses_it(config: Any) -> None:
    with place(in_turn(said())) as here:
        errors: list[str] = []
        for run in (here.plain, partial(here.run, steering())):
            with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the SDK says
                run(fixer(), run_config=config)
            errors.append(repr(caught.value))
        assert errors[0] == errors[1]
