"""A steered model object is a model as the SDK knows them: whom it asks, and what it passes on."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Model, ModelProvider, MultiProvider

from reasonblocks.exceptions import ConfigError
from reasonblocks_openai_agents import openai_model, steering_of
from tests.openai_agents.world import fixer, in_turn, looks, place, said, steering, whole_and_streamed


@whole_and_streamed
def test_an_identifier_is_built_by_the_callers_factory(way: str) -> None:
    built: list[str] = []

    def factory(name: str) -> Model:
        built.append(name)
        return here.model(name)

    with place(in_turn(*looks(3)), way) as here:
        model = openai_model(steering(model_routing={"NORMAL": "strong"}), "own", factory)
        assert model.model == "own"
        here.plain(fixer(model=model))
        assert [asked.model for asked in here.requests] == ["own", "strong", "strong", "strong"]
        assert here.guided == [True, True, False, False]
    assert built == ["own", "strong"]
    assert [entry.model_id for entry in model.step_log] == ["own", "strong", "strong", "strong"]


@whole_and_streamed
def test_an_identifier_is_built_by_the_sdk_where_there_is_no_factory(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with place(in_turn(*looks(1)), way) as here:
        monkeypatch.setattr("agents.models._openai_shared._default_openai_client", here.openai)
        here.plain(fixer(model=openai_model(steering(), "own")))
        assert [asked.model for asked in here.requests] == ["own", "own"]


@whole_and_streamed
def test_what_a_factory_raises_for_the_agents_own_model_is_the_callers(way: str) -> None:
    def factory(name: str) -> Model:
        raise LookupError("no such model")

    with place(in_turn(said()), way) as here, pytest.raises(LookupError, match="no such model"):
        here.plain(fixer(model=openai_model(steering(), "own", factory)))


@pytest.mark.parametrize("wrong", [{"placement": "context"}, {"task_profile": "cooking"}, {"runid": "x"}])
def test_a_wrong_option_is_refused_where_it_is_given(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        openai_model(steering(), "own", **wrong)


@whole_and_streamed
def test_closing_it_closes_the_models_that_it_made(way: str) -> None:
    closed: list[str] = []

    def factory(name: str) -> Model:
        async def close() -> None:
            closed.append(name)

        model = here.model(name)
        model.close = close  # type: ignore[method-assign]
        return model

    with place(in_turn(*looks(1)), way) as here:
        model = openai_model(steering(model_routing={"NORMAL": "strong"}), "own", factory)
        here.plain(fixer(model=model))
        here.until(model.close())
        here.until(model.close())
    assert closed[:2] == ["own", "strong"]


@whole_and_streamed
def test_it_serves_on_after_it_was_closed(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        model = openai_model(steering(), here.model("own"))
        here.plain(fixer(model=model))
        here.until(model.close())
        here.plain(fixer(model=model))
    assert [run.outcome for run in model.runs.values()] == ["success", "success"]


@whole_and_streamed
def test_in_a_steered_run_it_belongs_to_that_run(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        rb = steering()
        model = openai_model(rb, here.model("own"))
        run = steering_of(here.run(rb, fixer(model=model)))
        assert here.guided == [True, True, False, False]
    assert ([entry.step for entry in run.step_log], len(model.runs)) == ([0, 1, 2, 3], 0)


@whole_and_streamed
def test_it_may_be_what_a_callers_provider_gives(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        model = openai_model(steering(), here.model("own"))
        here.plain(fixer(), run_config=here.config(model_provider=Giving(model)))
        assert here.guided == [True, True, False, False]
    assert len(model.runs) == 1


@whole_and_streamed
def test_a_steered_run_whose_provider_gives_it_asks_once_for_each_call(way: str) -> None:
    with place(in_turn(*looks(3)), way) as here:
        rb = steering(model_routing={"NORMAL": here.model("strong")})
        model = openai_model(rb, here.model("own"))
        run = steering_of(here.run(rb, fixer(), run_config=here.config(model_provider=Giving(model))))
        assert [asked.model for asked in here.requests] == ["own", "strong", "strong", "strong"]
        assert here.guided == [True, True, False, False]
    assert [(entry.attempts, entry.model_id) for entry in run.step_log] == [(1, "own"), *[(1, "strong")] * 3]
    assert len(model.runs) == 0


class Giving(ModelProvider):
    """Gives one model, whatever is asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def get_model(self, model_name: str | None) -> Model:
        return self.model


def test_the_sdks_own_provider_knows_no_difference() -> None:
    assert isinstance(openai_model(steering(), "own", MultiProvider().get_model), Model)


@whole_and_streamed
def test_a_run_can_be_marked_as_failed_by_its_id(way: str) -> None:
    with place(in_turn(*looks(1)), way) as here:
        model = openai_model(steering(), here.model("own"), run_id="run-1")
        here.plain(fixer(model=model))
        model.mark_failure("failure: tests are red", "run-1")
    assert model.runs["run-1"].outcome == "failure: tests are red"
