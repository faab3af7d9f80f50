"""What steering adds to a session of the Claude Agent SDK: the same one with and without it, in turn, on the real CLI.

A third way gives the CLI hooks that do nothing: what it takes itself to ask a process. The model is on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median, quantiles
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, SdkMcpTool, create_sdk_mcp_server

from reasonblocks import ReasonBlocks
from reasonblocks_claude_agent import SteeredClaudeClient, claude_hooks
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked, ScriptedServer

SEED = 20
WORDS = (
    "the a this that then first next after before again only other new last we it I need should check look read run "
    "try change add keep find test case value name list line file module function return result output parser config"
).split()
THOUGHT_WORDS = 100
RESULT_WORDS = 40
QUESTION = "Find out why the parser fails for an empty list and fix it."
TOOL = "mcp__files__read_file"
KEPT = ("PATH", "LANG", "TMPDIR")

Spent = dict[str, list[float]]
Make = Callable[[ReasonBlocks, ClaudeAgentOptions, Spent], ClaudeSDKClient]


def text(words: int, salt: str) -> str:
    return " ".join(random.Random(f"{SEED} {salt}").choices(WORDS, k=words))


# --- the session


def answer(calls: int) -> Callable[[Asked], Turn]:
    """A thought and one tool call so many times, then an answer."""

    def say(asked: Asked) -> Turn:
        at = asked.answers
        call = tool_call(f"call-{at}", TOOL, {"path": f"src/module_{at}.py"})
        return Turn(text=text(THOUGHT_WORDS, f"thought {at}"), tool_calls=(call,) if at < calls else ())

    return say


async def read_file(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text(RESULT_WORDS, arguments["path"])}]}


def options(home: str, server: ScriptedServer) -> ClaudeAgentOptions:
    path = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = SdkMcpTool(name="read_file", description="Reads a file.", input_schema=path, handler=read_file)
    return ClaudeAgentOptions(
        model="claude-sonnet-5-5",
        system_prompt="You fix bugs.",
        tools=[],
        mcp_servers={"files": create_sdk_mcp_server("files", tools=[tool])},
        allowed_tools=[TOOL],
        setting_sources=[],
        cwd=home,
        env={
            "HOME": home,
            "CLAUDE_CONFIG_DIR": home,
            "ANTHROPIC_BASE_URL": server.anthropic_url,
            "ANTHROPIC_API_KEY": "not needed",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )


@contextmanager
def own_environment() -> Iterator[str]:
    """A home for the CLI. It inherits this process's environment: without keys and endpoints of whoever runs this."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        yield home


# --- the ways to have it


def plain(rb: ReasonBlocks, given: ClaudeAgentOptions, spent: Spent) -> ClaudeSDKClient:
    return ClaudeSDKClient(given)


def idle_hooks(rb: ReasonBlocks, given: ClaudeAgentOptions, spent: Spent) -> ClaudeSDKClient:
    """For the same events as steering's."""
    hooks: Any = {event: [HookMatcher(hooks=[nothing])] for event in claude_hooks(rb).options.hooks or ()}
    return ClaudeSDKClient(replace(given, hooks=hooks))


def steered(rb: ReasonBlocks, given: ClaudeAgentOptions, spent: Spent) -> ClaudeSDKClient:
    """Each hook's time is taken from where the SDK calls it to where it has its answer."""
    client = SteeredClaudeClient(rb, given)
    for event, matchers in (client.options.hooks or {}).items():
        matchers[-1].hooks = [timed(event, hook, spent) for hook in matchers[-1].hooks]
    return client


WAYS: dict[str, Make] = {"plain": plain, "hooks": idle_hooks, "steered": steered}


async def nothing(given: Any, tool_use_id: Any, context: Any) -> Any:
    return {}


def timed(event: str, hook: Any, spent: Spent) -> Any:
    async def callback(given: Any, tool_use_id: Any, context: Any) -> Any:
        started = time.perf_counter()
        try:
            return await hook(given, tool_use_id, context)
        finally:
            spent.setdefault(f"hook {event}", []).append((time.perf_counter() - started) * 1e3)

    return callback


# --- what is measured


async def session(client: ClaudeSDKClient, calls: int, spent: Spent) -> None:
    started = time.perf_counter()
    await client.connect()
    connected = time.perf_counter()
    try:
        await client.query(QUESTION)
        async for _ in client.receive_response():
            pass
        done = time.perf_counter()
    finally:
        await client.disconnect()
    spent.setdefault("connect", []).append((connected - started) * 1e3)
    spent.setdefault("step", []).append((done - connected) * 1e3 / calls)


async def in_turn(tool_calls: int, runs: int) -> dict[str, Spent]:
    """Milliseconds, of each session of each way. The first round is not counted."""
    rb = ReasonBlocks()
    all_spent: dict[str, Spent] = {}
    with own_environment() as home, ScriptedServer(answer(tool_calls)) as server:
        for round_ in range(runs + 1):
            for name, make in WAYS.items():
                spent = all_spent.setdefault(name, {}) if round_ else {}
                await session(make(rb, options(home, server), spent), tool_calls + 1, spent)
    return all_spent


def measure(tool_calls: int, runs: int) -> Iterator[dict[str, object]]:
    spent = asyncio.run(in_turn(tool_calls, runs))
    both: dict[str, object] = {"calls": tool_calls + 1, "runs": runs}
    yield {"what": "connect", **both, **compared("connect", spent)}
    yield {"what": "step", **both, **compared("step", spent)}
    for what, times in spent["steered"].items():
        if what.startswith("hook "):
            p95 = round(quantiles(times, n=20)[-1], 2)
            yield {"what": what, **both, "times": len(times), "p50_ms": round(median(times), 2), "p95_ms": p95}


def compared(what: str, spent: dict[str, Spent]) -> dict[str, object]:
    without, idle, with_it = (spent[name][what] for name in WAYS)
    added = [more - less for less, more in zip(without, with_it, strict=True)]
    return {
        "plain_ms": round(median(without), 1),
        "steered_ms": round(median(with_it), 1),
        "added_p50_ms": round(median(added), 1),
        "added_p95_ms": round(quantiles(added, n=20)[-1], 1),
        "idle_hooks_add_ms": round(median(more - less for less, more in zip(without, idle, strict=True)), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--calls", type=int, default=12, help="tool calls of one session (default 12)")
    parser.add_argument("--runs", type=int, default=8, help="sessions of each way (default 8; 2 or more)")
    given = parser.parse_args()
    if not given.json:
        print("the CLI, its tools and the scripted provider included; the model answers at once\n")
    for row in measure(given.calls, given.runs):
        print(json.dumps(row) if given.json else sentence(row), flush=True)


def sentence(row: dict[str, object]) -> str:
    if "p50_ms" in row:
        return f"{row['what']}: {row['times']} times, p50 {row['p50_ms']} ms, p95 {row['p95_ms']} ms"
    return (
        f"{row['what']}: plain {row['plain_ms']} ms, steered {row['steered_ms']} ms; added p50 "
        f"{row['added_p50_ms']} ms, p95 {row['added_p95_ms']} ms; idle hooks add {row['idle_hooks_add_ms']} ms"
    )


if __name__ == "__main__":
    main()
