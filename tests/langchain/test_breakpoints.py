"""Anthropic takes four blocks with `cache_control` in a request: ours never makes it five."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from reasonblocks_langchain import middleware
from reasonblocks_testing import Turn
from reasonblocks_testing.server import ScriptedServer
from tests.langchain.world import agent
from tests.steered import steering

anthropic = pytest.importorskip("langchain_anthropic")
CACHED = {"type": "ephemeral"}
ASKED = "Fix the failing tests."


def block(text: str, *, cached: bool = True) -> dict[str, Any]:
    return {"type": "text", "text": text, **({"cache_control": CACHED} if cached else {})}


def history(marked: int) -> list[AnyMessage]:
    """So many marks, the first of them in a tool's output."""
    called = AIMessage("I look.", tool_calls=[{"name": "look", "args": {"path": "f"}, "id": "c"}])
    output = ToolMessage([block("empty", cached=marked > 0)], tool_call_id="c")
    asked: list[str | dict[Any, Any]] = [block(f"{at}", cached=at < marked) for at in range(1, 4)]
    return [HumanMessage(ASKED), called, output, HumanMessage(asked)]


def body(messages: Sequence[AnyMessage], *around: Any, model: Any = None, **options: Any) -> Any:
    """The one request that the provider got."""
    with ScriptedServer(lambda asked: Turn(text="Done.")) as server:
        chat = anthropic.ChatAnthropic(
            model="claude-scripted", api_key="none", base_url=server.anthropic_url, max_retries=0, **(model or {})
        )
        agent(chat, *around, middleware(steering(placement="system")), **options).invoke({"messages": list(messages)})
        (request,) = server.requests
        return request.body


def marks(part: Any) -> int:
    if isinstance(part, dict):
        return ("cache_control" in part) + sum(map(marks, part.values()))
    return sum(map(marks, part)) if isinstance(part, list) else 0


def in_system(sent: Any) -> list[bool]:
    return ["cache_control" in one for one in sent["system"]]


@pytest.mark.parametrize("marked", [0, 1, 2, 3])
def test_with_room_for_it_the_prompt_is_cached(marked: int) -> None:
    sent = body(history(marked))
    assert in_system(sent) == [True, False]
    assert marks(sent) == marked + 1


def test_with_four_in_the_messages_the_prompt_is_not_marked() -> None:
    sent = body([HumanMessage([block("0")]), AIMessage("Yes."), *history(3)])
    assert in_system(sent) == [False, False]
    assert marks(sent) == 4
    assert "[REASONBLOCKS]" in sent["system"][1]["text"]


@pytest.mark.parametrize("where", ["extras", "model_kwargs", "settings"])
def test_marks_of_tools_and_of_the_call_itself_count(where: str) -> None:
    given: dict[str, Any] = {}
    around: list[Any] = []
    if where == "extras":
        given["tools"] = [tool(extras={"cache_control": CACHED})(look)]
    elif where == "model_kwargs":
        given["model"] = {"model_kwargs": {"cache_control": CACHED}}
    else:
        around = [setting(cache_control=CACHED)]
    sent = body(history(3), *around, **given)
    assert "[REASONBLOCKS]" in sent["system"][-1]["text"]
    assert in_system(sent) == [False, False]
    assert marks(sent) == 4


def test_langchains_caching_middleware_keeps_its_marks_and_gets_none_of_ours() -> None:
    caching = pytest.importorskip("langchain_anthropic.middleware").AnthropicPromptCachingMiddleware()
    sent = body(history(1), caching)
    assert in_system(sent) == [True, False]
    assert marks(sent) == 4


def test_a_tool_with_an_argument_of_that_name_has_no_mark() -> None:
    called = AIMessage("I look.", tool_calls=[{"name": "look", "args": {"cache_control": "x"}, "id": "d"}])
    sent = body([HumanMessage("Look."), called, ToolMessage("empty", tool_call_id="d"), *history(3)])
    assert in_system(sent) == [True, False]


def test_the_system_prompts_own_marks_stay() -> None:
    own = SystemMessage([block("You fix."), block("Today.", cached=False)])
    sent = body(history(3), system_prompt=own)
    assert in_system(sent) == [True, False, False]


def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


def setting(**settings: Any) -> Any:
    from langchain.agents.middleware import AgentMiddleware

    class Setting(AgentMiddleware[Any, Any, Any]):
        """An outer middleware that adds keywords to the call."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(model_settings={**request.model_settings, **settings}))

    return Setting()
