"""Sets up the agent of the tests: a scripted model and its tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool

from tests.langchain.scripted import ScriptedModel, by_position, calls

QUESTION = {"messages": [("user", "Fix the failing tests.")]}
Way = Callable[..., Any]
"""Runs an agent, and returns its last state."""


def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


def crash(path: str) -> str:
    """Raises."""
    raise LookupError(path)


def looks(count: int) -> list[Any]:
    """So many turns that call `look`, and one that ends."""
    return [*(calls("look", f"I look at file {at}.", id=f"c{at}", path=f"f{at}") for at in range(count)), "All seen."]


def scripted(count: int = 3, **options: Any) -> ScriptedModel:
    """A model whose turns are those of `looks`."""
    return ScriptedModel(script=by_position(*looks(count)), **options)


def agent(model: ScriptedModel, *middleware: Any, tools: Sequence[Any] = (look,), **options: Any) -> Any:
    given: dict[str, Any] = {"system_prompt": "You fix bugs.", **options}
    return create_agent(model, tools=list(tools), middleware=list(middleware), **given)


def handing_over(child: Any) -> Any:
    """A tool `delegate` by which an agent gives another one a task."""

    @tool
    def delegate(task: str) -> str:
        """Hands a task over."""
        return str(child.invoke({"messages": [("user", task)]})["messages"][-1].text)

    return delegate


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def invoke(made: Any, given: Any = QUESTION, config: Any = None) -> Any:
    return made.invoke(given, config)


def ainvoke(made: Any, given: Any = QUESTION, config: Any = None) -> Any:
    return asyncio.run(made.ainvoke(given, config))


def stream(made: Any, given: Any = QUESTION, config: Any = None) -> Any:
    return list(made.stream(given, config, stream_mode="values"))[-1]


both_ways = pytest.mark.parametrize("way", [invoke, ainvoke])
three_ways = pytest.mark.parametrize("way", [invoke, ainvoke, stream])
