"""What steering adds to one step of a LangChain agent: the same agent with and without it, in turn, in one process.

A third agent has a middleware with the same hooks that does nothing: what LangChain itself takes for them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from reasonblocks import ReasonBlocks

SEED = 20
WORDS = (
    "the a this that then first next after before again only other new last we it I need should check look read run "
    "try change add keep find test case value name list line file module function return result output parser config"
).split()
THOUGHT_WORDS = 100
RESULT_WORDS = 40
QUESTION = {"messages": [("user", "Find out why the parser fails for an empty list and fix it.")]}


def text(words: int, salt: str) -> str:
    return " ".join(random.Random(f"{SEED} {salt}").choices(WORDS, k=words))


class ScriptedModel(BaseChatModel):
    """Answers at once: a thought and one tool call `calls` times, then an answer."""

    calls: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind()

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        at = sum(isinstance(message, AIMessage) for message in messages)
        call = {"name": "read_file", "args": {"path": f"src/module_{at}.py"}, "id": f"call-{at}"}
        usage = {"input_tokens": 2_000, "output_tokens": 150, "total_tokens": 2_150}
        said = AIMessage(text(THOUGHT_WORDS, f"thought {at}"), tool_calls=[call] if at < self.calls else [])
        return ChatResult(generations=[ChatGeneration(message=said.model_copy(update={"usage_metadata": usage}))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages)


def read_file(path: str) -> str:
    """Reads a file."""
    return text(RESULT_WORDS, path)


class Idle(AgentMiddleware[Any, Any, Any]):
    """The hooks that steering uses, doing nothing."""

    def before_agent(self, state: Any, runtime: Any) -> None: ...
    def before_model(self, state: Any, runtime: Any) -> None: ...
    def after_agent(self, state: Any, runtime: Any) -> None: ...
    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return await handler(request)


@dataclass
class Contender:
    """One way to make the agent, and how long its runs took, in microseconds a model call."""

    agent: Any
    config: Any
    spent: list[float] = field(default_factory=list)

    @property
    def supersteps(self) -> int:
        return sum(1 for _ in self.agent.stream(QUESTION, self.config))

    def invoke(self, calls: int) -> None:
        started = time.perf_counter()
        self.agent.invoke(QUESTION, self.config)
        self.spent.append((time.perf_counter() - started) * 1e6 / calls)

    async def ainvoke(self, calls: int) -> None:
        started = time.perf_counter()
        await self.agent.ainvoke(QUESTION, self.config)
        self.spent.append((time.perf_counter() - started) * 1e6 / calls)


def contenders(tool_calls: int) -> dict[str, Contender]:
    middleware: dict[str, list[Any]] = {"plain": [], "hooks": [Idle()], "steered": [ReasonBlocks().middleware()]}
    model = ScriptedModel(calls=tool_calls)
    config = {"recursion_limit": 10 * tool_calls + 20}
    return {
        name: Contender(create_agent(model, [read_file], system_prompt="You fix bugs.", middleware=given), config)
        for name, given in middleware.items()
    }


async def ainvoke_all(agents: Sequence[Contender], calls: int, runs: int) -> None:
    for _ in range(runs):
        for agent in agents:
            await agent.ainvoke(calls)


def measure(tool_calls: int, runs: int) -> Iterator[dict[str, object]]:
    calls = tool_calls + 1
    for way in ("invoke", "ainvoke"):
        agents = contenders(tool_calls)
        supersteps = {name: agent.supersteps for name, agent in agents.items()}
        if way == "ainvoke":
            asyncio.run(ainvoke_all([*agents.values()], calls, runs))
        for agent in [*agents.values()] * (runs if way == "invoke" else 0):
            agent.invoke(calls)
        plain, hooks, steered = (agents[name].spent for name in ("plain", "hooks", "steered"))
        added = [with_it - without for without, with_it in zip(plain, steered, strict=True)]
        yield {
            "way": way,
            "calls": calls,
            "runs": runs,
            "plain_us": round(median(plain), 1),
            "steered_us": round(median(steered), 1),
            "added_p50_us": round(median(added), 1),
            "added_p95_us": round(quantiles(added, n=20)[-1], 1),
            "idle_hooks_add_us": round(median(idle - without for without, idle in zip(plain, hooks, strict=True)), 1),
            "plain_supersteps": supersteps["plain"],
            "steered_supersteps": supersteps["steered"],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--calls", type=int, default=12, help="tool calls of one run (default 12)")
    parser.add_argument("--runs", type=int, default=40, help="runs of each agent (default 40)")
    given = parser.parse_args()
    if not given.json:
        print("microseconds a model call, the agent and its tools included; the model answers at once\n")
        heads = f"{'plain':>9}{'steered':>9}{'added p50':>11}{'p95':>9}{'idle hooks':>12}{'supersteps':>14}"
        print(f"{'way':10}{'calls':>7}{heads}")
    for row in measure(given.calls, given.runs):
        print(json.dumps(row) if given.json else table_row(row), flush=True)


def table_row(row: dict[str, object]) -> str:
    supersteps = f"{row['plain_supersteps']} -> {row['steered_supersteps']}"
    return (
        f"{row['way']:10}{row['calls']:>7}{row['plain_us']:>9}{row['steered_us']:>9}"
        f"{row['added_p50_us']:>11}{row['added_p95_us']:>9}{row['idle_hooks_add_us']:>12}{supersteps:>14}"
    )


if __name__ == "__main__":
    main()
