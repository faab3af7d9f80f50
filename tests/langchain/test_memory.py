"""Agents that use the tools of codebase memory: what one run stores, a later one recalls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from reasonblocks import CodebaseMemory
from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.exceptions import Unavailable
from reasonblocks.memory import Finding, recalled_text
from reasonblocks_langchain import memory_tools, middleware
from tests.findings import FailingFindings
from tests.langchain.scripted import Script, ScriptedModel, by_position, calls
from tests.langchain.world import QUESTION, Way, agent, ainvoke, both_ways, invoke, look
from tests.steered import steering, unguided

NOTE = "The tests run with `make check`; pytest alone misses the plugins."
STORE = calls("memory_store", "I note that.", id="s1", content=NOTE, file_path="Makefile", finding_type="command")
RECALL = calls("memory_recall", "Is there a note?", id="r1", query="make check pytest plugins")


def streamed(made: Any) -> None:
    assert [*made.stream(QUESTION, stream_mode="messages")]


def astreamed(made: Any) -> None:
    async def read() -> list[Any]:
        return [part async for part in made.astream(QUESTION, stream_mode="updates")]

    assert asyncio.run(read())


every_way = pytest.mark.parametrize("way", [invoke, ainvoke, streamed, astreamed])
steered_or_not = pytest.mark.parametrize("is_steered", [False, True], ids=["plain", "steered"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text("check:\n", encoding="utf-8")
    return tmp_path


def opened(root: Path, codebase_id: str = "acme/search") -> CodebaseMemory:
    return CodebaseMemory(codebase_id, store=root / "memory.db", root=root, embedder=HashEmbedder())


def ran(way: Way, memory: CodebaseMemory, *turns: Any, is_steered: bool = False) -> ScriptedModel:
    return ran_by(way, memory, by_position(*turns), *([middleware(steering())] if is_steered else []))


def ran_by(way: Way, memory: CodebaseMemory, script: Script, *others: Any) -> ScriptedModel:
    model = ScriptedModel(script=script)
    way(agent(model, *others, tools=[look, *memory_tools(memory)]))
    return model


def results(model: ScriptedModel) -> list[ToolMessage]:
    """The tool messages of the last request."""
    return [message for message in model.seen[-1].messages if isinstance(message, ToolMessage)]


@every_way
@steered_or_not
def test_a_later_run_recalls_what_a_run_has_stored(root: Path, way: Way, is_steered: bool) -> None:
    with opened(root) as memory:
        (stored,) = results(ran(way, memory, STORE, "Noted.", is_steered=is_steered))
        (finding,) = memory.list_all()
    text = f"Stored as note {finding.finding_id} about Makefile: it is outdated once that file changes."
    assert (unguided(stored.text), stored.status, stored.tool_call_id) == (text, "success", "s1")
    with opened(root) as memory:
        model = ran(way, memory, RECALL, "Known.", is_steered=is_steered)
        expected = recalled_text(memory.recall("make check pytest plugins"))
    (recalled,) = results(model)
    assert (unguided(recalled.text), recalled.status, NOTE in expected) == (expected, "success", True)
    assert {"look", "memory_recall", "memory_store", "memory_forget"} == {*model.seen[0].tools}


def test_the_schema_that_the_model_gets_is_that_of_the_tool(root: Path) -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from reasonblocks.memory import memory_tools as described

    with opened(root) as memory:
        sent = [convert_to_openai_tool(tool)["function"] for tool in memory_tools(memory)]
        for one, tool in zip(sent, described(memory), strict=True):
            assert (one["name"], one["description"]) == (tool.name, tool.description)
            assert one["parameters"]["properties"] == tool.parameters["properties"]
            assert one["parameters"]["required"] == tool.parameters["required"]


@both_ways
def test_calls_at_once_are_all_answered(root: Path, way: Way) -> None:
    stores = [{"name": "memory_store", "args": {"content": f"{NOTE} {at}"}, "id": f"s{at}"} for at in range(8)]
    both = AIMessage(content="", tool_calls=[*stores, {"name": "look", "args": {"path": "a"}, "id": "l"}])
    with opened(root) as memory:
        found = results(ran(way, memory, both, "Done."))
        assert [message.tool_call_id for message in found] == [*(f"s{at}" for at in range(8)), "l"]
        assert [finding.finding_id in found[at].text for at, finding in enumerate(by_content(memory))] == [True] * 8


def by_content(memory: CodebaseMemory) -> list[Finding]:
    return sorted(memory.list_all(), key=lambda finding: finding.content)


@both_ways
@pytest.mark.parametrize("wrong", [{"self": 1}, {"config": {}, "query": "x"}, {"query": 1}, {"run_manager": None}])
def test_wrong_arguments_are_an_error_message_and_the_agent_goes_on(
    root: Path, way: Way, wrong: dict[str, Any]
) -> None:
    with opened(root) as memory:
        wrong_call = AIMessage(content="", tool_calls=[{"name": "memory_recall", "args": wrong, "id": "w"}])
        model = ran(way, memory, wrong_call, "I go on.")
    (answer,) = results(model)
    assert (answer.status, answer.text.startswith("memory_recall failed: ")) == ("error", True)
    assert len(model.seen) == 2


def dead() -> CodebaseMemory:
    return CodebaseMemory("acme/search", store=FailingFindings(Unavailable("the store", "no connection")))


@every_way
def test_a_dead_store_is_an_error_message_and_the_agent_goes_on(way: Way) -> None:
    model = ran(way, dead(), STORE, RECALL, "I go on.", is_steered=True)
    assert [(answer.status, answer.text) for answer in results(model)] == [
        ("error", f"{name} failed: the memory is unavailable: no connection. Continue without it.")
        for name in ("memory_store", "memory_recall")
    ]


def test_a_steered_step_has_the_calls_as_any_other_tools(root: Path) -> None:
    mw = middleware(steering())
    with opened(root) as memory:
        ran_by(invoke, memory, by_position(STORE, RECALL, calls("memory_forget", id="f"), "Done."), mw)
    (run,) = mw.runs.values()
    assert [entry.tool_calls for entry in run.step_log] == [
        ("memory_store",),
        ("memory_recall",),
        ("memory_forget",),
        (),
    ]
    assert [entry.error for entry in run.step_log] == [None] * 4


def test_two_agents_at_once_never_see_each_others_codebases(root: Path) -> None:
    async def one(name: str) -> list[str]:
        with opened(root, name) as memory:
            own = calls("memory_store", id="s1", content=f"{NOTE} This is {name}.")
            model = ScriptedModel(script=by_position(own, RECALL, "Done."))
            await agent(model, tools=memory_tools(memory)).ainvoke(QUESTION)
            return [answer.text for answer in results(model)]

    async def all_of(*names: str) -> list[list[str]]:
        return await asyncio.gather(*map(one, names))

    names = [f"acme/{at}" for at in range(6)]
    for name, (_, recalled) in zip(names, asyncio.run(all_of(*names)), strict=True):
        assert f"This is {name}." in recalled
        assert recalled.count("This is ") == 1
