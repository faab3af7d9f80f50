"""Sets up the agent of the tests: a scripted model and its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent

from tests.langchain.scripted import ScriptedModel, calls

QUESTION = {"messages": [("user", "Fix the failing tests.")]}
Config = Mapping[str, Any]


def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


def crash(path: str) -> str:
    """Raises."""
    raise LookupError(path)


def looks(count: int) -> list[Any]:
    """So many turns that call `look`, and one that ends."""
    return [*(calls("look", f"I look at file {at}.", id=f"c{at}", path=f"f{at}") for at in range(count)), "All seen."]


def agent(model: ScriptedModel, *middleware: Any, tools: Sequence[Any] = (look,), **options: Any) -> Any:
    given: dict[str, Any] = {"system_prompt": "You fix bugs.", **options}
    return create_agent(model, tools=list(tools), middleware=list(middleware), **given)


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}
