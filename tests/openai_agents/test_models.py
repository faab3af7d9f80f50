"""Models and providers: a steered model object, the models of the caller, and whoever closes a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from agents import (
    Model,
    ModelProvider,
    ModelRetryAdviceRequest,
    MultiProvider,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    function_tool,
    retry_policies,
    set_tracing_disabled,
)
from agents.items import ModelResponse
from agents.retry import ModelRetryAdvice
from agents.tool_context import ToolContext

from reasonblocks_openai_agents import openai_model, steering_of
from tests.openai_agents.world import (
    Giving,
    by_model,
    call,
    every_way,
    fixer,
    in_turn,
    looks,
    place,
    retrying,
    said,
    whole_and_streamed,
)
from tests.steered import steering

# ------------------------------------------------------------ a steered model object


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


def test_the_sdks_own_provider_knows_no_difference() -> None:
    assert isinstance(openai_model(steering(), "own", MultiProvider().get_model), Model)


# ------------------------------------------------------------ models of the caller


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


@whole_and_streamed
@pytest.mark.parametrize("off", ["0", "1"])
def test_what_a_model_says_of_trying_again_counts(off: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", off)
    with place(in_turn(replace(said(), failures=1)), way) as at:
        model = openai_model(steering(), Advising(at.model("own")))
        at.plain(fixer(model=model, model_settings=retrying(1, retry_policies.provider_suggested())))
        assert len(at.requests) == 2


# ------------------------------------------------------------ providers


@pytest.mark.parametrize(
    ("way", "kind"),
    [("run/responses", OpenAIResponsesModel), ("run/chat", OpenAIChatCompletionsModel)],
)
def test_who_looks_for_the_kind_of_a_runs_model_finds_the_callers(way: str, kind: type) -> None:
    seen: list[Model] = []

    @function_tool
    def peek(context: ToolContext[Any]) -> str:
        assert context.run_config is not None
        seen.append(context.run_config.model_provider.get_model("own"))
        return "seen"

    with place(in_turn(call("peek"), said()), way) as here:
        here.run(steering(), fixer(tools=[peek]))
    assert isinstance(seen[0], kind)
    assert isinstance(seen[0], Model)
    assert seen[0].model == "own"  # type: ignore[attr-defined]


@whole_and_streamed
def test_the_sdk_cleans_up_each_model_of_a_run_once(way: str) -> None:
    cleaned: list[str] = []

    class Provider(ModelProvider):
        def __init__(self) -> None:
            self.models: dict[str, Any] = {}

        def get_model(self, model_name: str | None) -> Model:
            name = str(model_name)
            if name not in self.models:
                self.models[name] = cleaning(here.model(name), name)
            return self.models[name]  # type: ignore[no-any-return]

    def cleaning(model: Any, name: str) -> Any:
        async def clean(owner: object) -> None:
            cleaned.append(name)

        model._cleanup_on_run_end = clean
        return model

    with place(in_turn(*looks(3)), way) as here:
        config = here.config(model_provider=Provider())
        here.run(steering(model_routing={"NORMAL": "strong"}), fixer(), run_config=config)
    assert cleaned == ["own", "strong"]


@contextmanager
def tracing_off() -> Iterator[None]:
    """For runs without a configuration that says so."""
    set_tracing_disabled(True)
    try:
        yield
    finally:
        set_tracing_disabled(False)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[ModelProvider]:
    """The providers that were closed, of the kind that the SDK makes for whom names none."""
    providers: list[ModelProvider] = []

    async def aclose(self: MultiProvider) -> None:
        providers.append(self)

    monkeypatch.setattr(MultiProvider, "aclose", aclose)
    return providers


@every_way
@pytest.mark.parametrize("config", [None, {"tracing_disabled": True}], ids=["none", "dictionary"])
def test_a_provider_that_nobody_has_named_is_closed_after_the_run(
    config: Any, way: str, closed: list[ModelProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    with place(in_turn(*looks(2)), way) as here:
        monkeypatch.setattr("agents.models._openai_shared._default_openai_client", here.openai)
        monkeypatch.setattr("agents.models._openai_shared._use_responses_by_default", way.endswith("responses"))
        with tracing_off():
            here.run(steering(), fixer(), run_config=config)
        assert here.guided == [True, True, False]
    assert len(set(closed)) == 1


@every_way
def test_the_callers_provider_is_not_closed(way: str, closed: list[ModelProvider]) -> None:
    with place(in_turn(*looks(1)), way) as here:
        own = MultiProvider(openai_client=here.openai, openai_use_responses=way.endswith("responses"))
        here.run(steering(), fixer(), run_config=here.config(model_provider=own))
    assert closed == []


@whole_and_streamed
def test_an_agent_of_a_tool_leaves_the_provider_to_the_run_that_called_it(
    way: str, closed: list[ModelProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, before = fixer(name="inner", model="inner"), list[int]()

    @function_tool
    def peek() -> str:
        before.append(len(closed))
        return "seen"

    answer = by_model(own=[call("ask", "a0", input="Look."), call("peek", "a1"), said()], inner=looks(1))
    with place(answer, way) as here, tracing_off():
        monkeypatch.setattr("agents.models._openai_shared._default_openai_client", here.openai)
        here.run(steering(), fixer(tools=[inner.as_tool("ask", "Asks."), peek]), run_config=None)
    assert (before, len(set(closed))) == ([0], 1)
