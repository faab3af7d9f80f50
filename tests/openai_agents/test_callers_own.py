"""What the caller gives the SDK goes on working: filters, formatters, configurations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from agents import UserError
from agents.run_config import CallModelData, ModelInputData, ToolErrorFormatterArgs

from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import (
    PROMPT,
    Judged,
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
    steering,
    whole_and_streamed,
)

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
        assert (here.requests[1].texts[-2], asked) == ("It is broken.", ["c0"])


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
