"""Streams look the same with us as without us, but for our own nodes and channel."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from reasonblocks_langchain import middleware
from tests.langchain.world import QUESTION, agent, scripted
from tests.steered import steering

MODES = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]
asynchronous = pytest.param(
    True, marks=pytest.mark.xfail(sys.version_info < (3, 11), reason="LangGraph streams no tokens there", strict=True)
)


def streamed(mode: str, *middleware: Any, is_async: bool) -> list[Any]:
    steered = agent(scripted(2), *middleware)

    async def collect() -> list[Any]:
        return [part async for part in steered.astream(QUESTION, stream_mode=mode)]

    return asyncio.run(collect()) if is_async else list(steered.stream(QUESTION, stream_mode=mode))


def tokens(parts: list[Any]) -> list[str]:
    return [chunk.text for chunk, _ in parts if chunk.type == "AIMessageChunk"]


@pytest.mark.parametrize("is_async", [False, asynchronous])
def test_tokens_are_streamed_as_without_us(is_async: bool) -> None:
    plain = streamed("messages", is_async=is_async)
    steered = streamed("messages", middleware(steering()), is_async=is_async)
    assert tokens(steered) == tokens(plain)
    assert len(tokens(plain)) > 9
    assert [type(chunk) for chunk, _ in steered] == [type(chunk) for chunk, _ in plain]


@pytest.mark.parametrize("is_async", [False, True])
def test_updates_of_the_agents_own_nodes_are_the_same(is_async: bool) -> None:
    def shown(parts: list[Any]) -> list[Any]:
        own = [(node, update) for part in parts for node, update in part.items() if node in ("model", "tools")]
        return [(node, [message.text for message in update["messages"]]) for node, update in own]

    plain = shown(streamed("updates", is_async=is_async))
    assert shown(streamed("updates", middleware(steering()), is_async=is_async)) == plain
    assert len(plain) == 5


@pytest.mark.parametrize("is_async", [False, True])
def test_values_have_one_channel_more(is_async: bool) -> None:
    plain = streamed("values", is_async=is_async)
    steered = streamed("values", middleware(steering()), is_async=is_async)
    assert {key for part in steered for key in part} - {key for part in plain for key in part} == {"reasonblocks"}
    assert [m.text for m in steered[-1]["messages"]] == [m.text for m in plain[-1]["messages"]]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_runs_to_its_end(mode: str) -> None:
    mw = middleware(steering(), run_id="run")
    streamed(mode, mw, is_async=False)
    assert mw.runs["run"].outcome == "success"
    assert [entry.attempts for entry in mw.step_log] == [1, 1, 1]
