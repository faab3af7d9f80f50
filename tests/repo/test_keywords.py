"""The methods that adapters add to `rb`, as a type checker sees them, and wrong keywords in every function of ours.

`./dev types` checks this file: it fails for a type that is not the asserted one, and for a `type: ignore` that ignores
nothing, which here is a wrong keyword that mypy does not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from agents import Agent, RunResult, RunResultStreaming
from typing_extensions import assert_type

from reasonblocks import DifficultyFSM, ReasonBlocks
from reasonblocks.exceptions import UnknownKeyword
from reasonblocks.types import RunOptions
from reasonblocks_claude_agent import SteeredClaudeClient, Steering, claude_hooks, query
from reasonblocks_langchain import SteeringMiddleware, TokenSavingMiddleware, middleware
from reasonblocks_openai_agents import RecordingHooks, SteeredModel, openai_hooks, openai_model

AGENT = Agent[None](name="fixer")


async def method_types(rb: ReasonBlocks) -> None:
    """Code that only mypy reads: nothing runs it."""
    assert_type(ReasonBlocks(token_budget=1_000, profile=None), ReasonBlocks)
    ReasonBlocks(token_budget="1000")  # type: ignore[arg-type]
    DifficultyFSM(fast_window="6")  # type: ignore[arg-type]
    assert_type(rb.middleware(run_id="r", interrupt_when="stalled"), SteeringMiddleware)
    assert_type(await rb.openai_run(AGENT, "Fix it.", run_id="r", max_turns=3), RunResult)
    assert_type(rb.openai_run_sync(AGENT, "Fix it.", run_id="r"), RunResult)
    assert_type(rb.openai_run_streamed(AGENT, "Fix it.", run_id="r"), RunResultStreaming)
    assert_type(rb.openai_model("gpt-5", run_id="r"), SteeredModel)
    assert_type(rb.openai_hooks(run_id="r"), RecordingHooks)
    assert_type(rb.claude_hooks(run_id="r"), Steering)


DOORS: list[tuple[str, str, Callable[[ReasonBlocks], object]]] = [
    ("ReasonBlocks", "api_key", lambda rb: ReasonBlocks(api_kez="k")),  # type: ignore[call-arg]
    ("DifficultyFSM", "fast_window", lambda rb: DifficultyFSM(fast_windo=6)),  # type: ignore[call-arg]
    ("session", "run_id", lambda rb: rb.session(run_idd="r")),  # type: ignore[call-arg]
    ("session", "run_id", lambda rb: rb.session(RunOptions(), run_idd="r")),  # type: ignore[call-arg]
    ("session", "snapshot", lambda rb: rb.session(snapshop={})),  # type: ignore[call-arg]
    ("session", "parent_run_id", lambda rb: rb.session(parent_runid="r")),  # type: ignore[call-arg]
    ("middleware", "run_id", lambda rb: rb.middleware(run_idd="r")),  # type: ignore[call-arg]
    ("middleware", "interrupt_when", lambda rb: rb.middleware(interupt_when="stalled")),  # type: ignore[call-arg]
    ("middleware", "run_id", lambda rb: middleware(rb, run_idd="r")),  # type: ignore[call-arg]
    ("TokenSavingMiddleware", "keep", lambda rb: TokenSavingMiddleware(keeep=1)),  # type: ignore[call-arg]
    ("openai_run", "run_id", lambda rb: asyncio.run(rb.openai_run(AGENT, "", run_idd="r"))),  # type: ignore[call-arg]
    ("openai_run_sync", "max_turns", lambda rb: rb.openai_run_sync(AGENT, "", max_turn=1)),  # type: ignore[call-arg]
    ("openai_run_streamed", "run_id", lambda rb: rb.openai_run_streamed(AGENT, "", run_idd="")),  # type: ignore[call-arg]
    ("openai_model", "default_model", lambda rb: rb.openai_model(default_modl="m")),  # type: ignore[call-arg]
    ("openai_model", "run_id", lambda rb: openai_model(rb, run_idd="r")),  # type: ignore[call-arg]
    ("openai_hooks", "run_id", lambda rb: rb.openai_hooks(run_idd="r")),  # type: ignore[call-arg]
    ("openai_hooks", "run_id", lambda rb: openai_hooks(rb, run_idd="r")),  # type: ignore[call-arg]
    ("claude_hooks", "run_id", lambda rb: rb.claude_hooks(run_idd="r")),  # type: ignore[call-arg]
    ("claude_hooks", "snapshots", lambda rb: claude_hooks(rb, snapshotz={})),  # type: ignore[call-arg]
    ("SteeredClaudeClient", "run_id", lambda rb: SteeredClaudeClient(rb, run_idd="r")),  # type: ignore[call-arg]
    ("SteeredClaudeClient", "transport", lambda rb: SteeredClaudeClient(rb, tranport=None)),  # type: ignore[call-arg]
    ("query", "prompt", lambda rb: query(rb, prompt="", promt="x")),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("function", "near", "call"), DOORS, ids=[f"{name}-{near}" for name, near, _ in DOORS])
def test_a_wrong_keyword_comes_with_the_nearest_one(
    function: str, near: str, call: Callable[[ReasonBlocks], object]
) -> None:
    with pytest.raises(UnknownKeyword, match=rf"^a keyword of {function}='\w+': unknown; did you mean '{near}'\? "):
        call(ReasonBlocks())
