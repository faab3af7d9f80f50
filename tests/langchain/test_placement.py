"""Where guidance stands in a request, beside what other middlewares put there."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from reasonblocks_langchain import middleware
from tests.langchain.scripted import ScriptedModel, by_position
from tests.langchain.world import QUESTION, agent, looks
from tests.steered import steering

CACHED = {"type": "ephemeral"}


def claude(count: int = 3) -> ScriptedModel:
    return ScriptedModel(script=by_position(*looks(count)), provider="anthropic", model_name="claude-x")


def test_an_anthropic_model_gets_a_cached_base_on_every_call() -> None:
    model = claude()
    agent(model, middleware(steering(placement="system"))).invoke(QUESTION)
    bases = [seen.system[0] for seen in model.seen]
    assert bases == [{"type": "text", "text": "You fix bugs.", "cache_control": CACHED}] * 4
    assert [len(seen.system) for seen in model.seen] == [2, 2, 1, 1]
    assert all("cache_control" not in block for seen in model.seen for block in seen.system[1:])


def test_other_models_get_plain_text() -> None:
    model = ScriptedModel(script=by_position(*looks(3)), provider="openai", model_name="gpt-x")
    agent(model, middleware(steering(placement="system"))).invoke(QUESTION)
    assert all(isinstance(seen.system, str) for seen in model.seen)
    assert [seen.system == "You fix bugs." for seen in model.seen] == [False, False, True, True]


def test_standing_rules_of_a_run_are_in_the_cached_base_of_every_call() -> None:
    model = claude()
    agent(model, middleware(steering(standing_rules="run"))).invoke(QUESTION)
    assert all("Check before you say" in seen.system[1]["text"] for seen in model.seen)
    assert all(seen.system[1]["cache_control"] == CACHED for seen in model.seen)


@pytest.mark.parametrize("asked", [None, "tail"])
def test_guidance_is_the_last_thing_read_and_nothing_stays(asked: Literal["tail"] | None) -> None:
    model = ScriptedModel(script=by_position(*looks(3)))
    mw = middleware(steering(), placement=asked)
    result = agent(model, mw).invoke(QUESTION)
    first, second, third, _ = model.seen
    assert [type(message) for message in first.messages[1:]] == [HumanMessage]
    assert first.messages[-1].text.startswith("Fix the failing tests.\n\n[REASONBLOCKS]")
    assert [type(message) for message in second.messages[-2:]] == [ToolMessage, HumanMessage]
    assert "Step 0 looked again" in second.messages[-1].text
    assert isinstance(third.messages[-1], ToolMessage)
    assert {seen.system for seen in model.seen} == {"You fix bugs."}
    assert {entry.placement for entry in mw.step_log} == {"tail"}
    assert "REASONBLOCKS" not in repr(result)


class Peek(AgentMiddleware[Any, Any, Any]):
    """The innermost middleware: sees what a model would, and answers itself."""

    def __init__(self) -> None:
        super().__init__()
        self.systems: list[Any] = []

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.systems.append(request.system_message.content)
        return AIMessage("Done.")


def test_langchains_own_caching_middleware_goes_before_ours() -> None:
    anthropic = pytest.importorskip("langchain_anthropic")
    caching = pytest.importorskip("langchain_anthropic.middleware").AnthropicPromptCachingMiddleware()
    model, peek = anthropic.ChatAnthropic(model="claude-sonnet-4-5", api_key="none"), Peek()
    agent(model, caching, middleware(steering(placement="system")), peek).invoke(QUESTION)
    ((base, guidance),) = peek.systems
    assert base["cache_control"]["type"] == "ephemeral"
    assert "[REASONBLOCKS]" in guidance["text"]
    assert "cache_control" not in guidance
