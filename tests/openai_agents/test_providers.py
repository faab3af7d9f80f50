"""A run's provider and its models are those of the caller, and are closed by whom the SDK has close them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from agents import (
    Model,
    ModelProvider,
    MultiProvider,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    function_tool,
    set_tracing_disabled,
)
from agents.tool_context import ToolContext

from tests.openai_agents.world import (
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
