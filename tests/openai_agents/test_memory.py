"""Agents that use the tools of codebase memory: what one run stores, a later one recalls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import Agent

from reasonblocks import CodebaseMemory
from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.exceptions import Unavailable
from reasonblocks.memory import memory_tools as described
from reasonblocks.memory import recalled_text
from reasonblocks_openai_agents import memory_tools, steering_of
from reasonblocks_testing import Turn, tool_call
from tests.findings import FailingFindings
from tests.openai_agents.world import Place, by_model, call, every_way, fixer, in_turn, look, place, said
from tests.steered import steering, unguided

NOTE = "The tests run with `make check`; pytest alone misses the plugins."
STORE = call("memory_store", "s1", "I note that.", content=NOTE, file_path="Makefile", finding_type="command")
RECALL = call("memory_recall", "r1", "Is there a note?", query="make check pytest plugins")
steered_or_not = pytest.mark.parametrize("is_steered", [False, True], ids=["plain", "steered"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text("check:\n", encoding="utf-8")
    return tmp_path


def opened(root: Path, codebase_id: str = "acme/search") -> CodebaseMemory:
    return CodebaseMemory(codebase_id, store=root / "memory.db", root=root, embedder=HashEmbedder())


def ran(at: Place, memory: CodebaseMemory, *, is_steered: bool) -> list[str]:
    """Run a new agent; return the outputs of its tools as its last request has them."""
    given = fixer(tools=[look, *memory_tools(memory)])
    if is_steered:
        at.run(steering(), given)
    else:
        at.plain(given)
    return outputs(at)


def outputs(at: Place) -> list[str]:
    body = at.requests[-1].body
    if "input" in body:
        return [unguided(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]
    return [unguided(message["content"]) for message in body["messages"] if message["role"] == "tool"]


@every_way
@steered_or_not
def test_a_later_run_recalls_what_a_run_has_stored(root: Path, way: str, is_steered: bool) -> None:
    with opened(root) as memory, place(in_turn(STORE, said("Noted.")), way) as at:
        (stored,) = ran(at, memory, is_steered=is_steered)
        (finding,) = memory.list_all()
    assert stored == f"Stored as note {finding.finding_id} about Makefile: it is outdated once that file changes."
    with opened(root) as memory, place(in_turn(RECALL, said("Known.")), way) as at:
        (recalled,) = ran(at, memory, is_steered=is_steered)
        assert recalled == recalled_text(memory.recall("make check pytest plugins"))
    assert NOTE in recalled


def test_the_schemas_are_sent_as_they_are(root: Path) -> None:
    with opened(root) as memory, place(in_turn(said())) as at:
        ran(at, memory, is_steered=False)
        sent = at.requests[0].body["tools"][1:]
        assert [(one["name"], one["description"], one["parameters"], one["strict"]) for one in sent] == [
            (tool.name, tool.description, tool.parameters, False) for tool in described(memory)
        ]


@every_way
def test_calls_at_once_are_all_answered(root: Path, way: str) -> None:
    stores = [tool_call(f"s{at}", "memory_store", {"content": f"{NOTE} {at}"}) for at in range(8)]
    both = Turn(tool_calls=(*stores, tool_call("l", "look", {"path": "a"})))
    with opened(root) as memory, place(in_turn(both, said()), way) as at:
        *stored, looked = ran(at, memory, is_steered=True)
        found = sorted(memory.list_all(), key=lambda one: one.content)
    assert looked == "a is empty"
    assert [one.finding_id in text for one, text in zip(found, stored, strict=True)] == [True] * 8


@pytest.mark.parametrize("arguments", ['{"query": ', "[]", '{"query": 1}', '{"qeury": "x"}', ""])
def test_wrong_arguments_are_an_error_text(root: Path, arguments: str) -> None:
    with opened(root) as memory:
        (recall, *_) = memory_tools(memory)
        text = asyncio.run(recall.on_invoke_tool(None, arguments))  # type: ignore[union-attr,arg-type]
    assert text.startswith("memory_recall failed: ")
    assert text.endswith("Nothing was done. Correct the arguments and call it again.")


@every_way
def test_a_dead_store_is_an_error_text_and_the_agent_goes_on(way: str) -> None:
    memory = CodebaseMemory("acme/search", store=FailingFindings(Unavailable("the store", "no connection")))
    with place(in_turn(STORE, RECALL, said("I go on.")), way) as at:
        assert ran(at, memory, is_steered=True) == [
            f"{name} failed: the memory is unavailable: no connection. Continue without it."
            for name in ("memory_store", "memory_recall")
        ]


def test_a_steered_step_has_the_calls_as_any_other_tools(root: Path) -> None:
    with opened(root) as memory, place(in_turn(STORE, RECALL, said())) as at:
        run = steering_of(at.run(steering(), fixer(tools=[look, *memory_tools(memory)])))
    assert [entry.tool_calls for entry in run.step_log] == [("memory_store",), ("memory_recall",), ()]
    assert (run.outcome, [entry.error for entry in run.step_log]) == ("success", [None] * 3)


def test_two_agents_at_once_never_see_each_others_codebases(root: Path) -> None:
    names = [f"acme{at}" for at in range(6)]
    script = {name: (call("memory_store", "s1", content=f"{NOTE} This is {name}."), RECALL, said()) for name in names}

    def own(name: str, memory: CodebaseMemory) -> Agent[Any]:
        return fixer(name=name, model=name, tools=memory_tools(memory))

    async def all_of(at: Place, memories: Sequence[CodebaseMemory]) -> None:
        await asyncio.gather(*(at.aplain(own(name, memory)) for name, memory in zip(names, memories, strict=True)))

    memories = [opened(root, name) for name in names]
    with place(by_model(**script)) as at:
        at.until(all_of(at, memories))
        last = {asked.model: asked.body["input"] for asked in at.requests if asked.answers == 2}
    for memory in memories:
        memory.close()
    for name in names:
        recalled = [item["output"] for item in last[name] if item.get("type") == "function_call_output"][-1]
        assert (f"This is {name}." in recalled, recalled.count("This is ")) == (True, 1)
    assert json.dumps(last).count("Stored as note") == len(names)
