"""Sets up the agents of the tests: a provider on loopback, a client, agents and tools."""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias, TypeVar

import pytest
from agents import (
    Agent,
    Model,
    ModelProvider,
    ModelRetrySettings,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
    RunResultStreaming,
    function_tool,
    retry_policies,
)
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai._utils import is_given
from openai.resources.chat.completions import completions
from openai.resources.responses import responses

from reasonblocks import ReasonBlocks
from reasonblocks.types import Step, Usage
from reasonblocks_openai_agents import SteeredRun, openai_run, openai_run_streamed, openai_run_sync
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Answer, Asked, ScriptedServer

SDK = tuple(int(part) for part in version("openai-agents").split(".")[:2])
TASK = "Fix the failing tests."
PROMPT = "You fix bugs."
WAYS = tuple(f"{how}/{api}" for how in ("run", "run_sync", "run_streamed") for api in ("responses", "chat"))
every_way = pytest.mark.parametrize("way", WAYS)
whole_and_streamed = pytest.mark.parametrize("way", ["run/responses", "run_streamed/responses"])
"""Ways to call the SDK for tests in which neither the API nor a running loop matters."""
streamed = pytest.mark.parametrize("way", [way for way in WAYS if way.startswith("run_streamed")])
awaited = pytest.mark.parametrize("way", [way for way in WAYS if not way.startswith("run_sync")])
"""Ways to call the SDK from within a running event loop."""
Result: TypeAlias = "RunResult | RunResultStreaming"
T = TypeVar("T")


def since(newest: int, why: str) -> pytest.MarkDecorator:
    """For what the SDK can do since its version 0.`newest`."""
    return pytest.mark.skipif((0, newest) > SDK, reason=f"before 0.{newest} the SDK {why}")


# ------------------------------------------------------------ tools, and a model that calls them


@function_tool
def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


@function_tool
def crash(path: str) -> str:
    """Raises."""
    raise LookupError(path)


def call(name: str, id: str = "", text: str = "", **arguments: Any) -> Turn:
    """A turn that calls one tool."""
    usage = Usage(input=100, output=10)
    return Turn(text=text, tool_calls=(tool_call(id or f"{name}-call", name, arguments),), usage=usage)


def looks(count: int, mark: str = "") -> list[Turn]:
    """So many turns that call `look`, and one that ends."""
    return [*(call("look", f"c{mark}{at}", f"I look at file {at}.", path=f"f{at}") for at in range(count)), said()]


def said(text: str = "All seen.") -> Turn:
    return Turn(text=text, usage=Usage(input=100, output=10))


def in_turn(*turns: Turn) -> Answer:
    """Turn n answers a conversation that holds n answers."""
    return lambda asked: turns[asked.answers]


def one_by_one(*turns: Turn) -> Answer:
    """Turn n answers the n-th request, whatever it holds."""
    left = iter(turns)
    return lambda asked: next(left)


def by_model(**turns: Sequence[Turn]) -> Answer:
    """The same, with a list of turns for each model that is asked."""
    return lambda asked: turns[asked.model][asked.answers]


def by_task(asked: Asked) -> Turn:
    """Of a run of three looks, whose calls have ids of their own for each task."""
    return looks(3, mark=asked.task)[asked.answers]


class Giving(ModelProvider):
    """Gives one model, whatever is asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def get_model(self, model_name: str | None) -> Model:
        return self.model


def retrying(times: int, policy: Any = None) -> ModelSettings:
    """Try a call that a busy provider refuses so many times again, or those that the policy names."""
    backoff: Any = {"initial_delay": 0.0, "jitter": False}
    policy = policy or retry_policies.http_status([500, 503])
    return ModelSettings(retry=ModelRetrySettings(max_retries=times, backoff=backoff, policy=policy))


# ------------------------------------------------------------ steering


class Judged:
    """A scorer that keeps the steps which it was given."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, step: Step) -> float:
        self.steps.append(step)
        return 0.4

    @property
    def thoughts(self) -> list[str]:
        return [step.thought for step in self.steps]

    @property
    def results(self) -> list[list[tuple[str, bool | None]]]:
        """Of each step its tools' outputs, and whether they are errors."""
        return [[(one.output, one.is_error) for one in step.tool_results] for step in self.steps]


def fixer(**options: Any) -> Agent[Any]:
    given: dict[str, Any] = {"name": "fixer", "instructions": PROMPT, "model": "own", "tools": [look], **options}
    return Agent(**given)


# ------------------------------------------------------------ agents in tools


def as_tool(agent: Agent[Any], **options: Any) -> Any:
    return agent.as_tool(f"ask_{agent.name}", "Asks it.", **options)


def named(name: str, *tools: Any, **options: Any) -> Agent[Any]:
    """An agent whose model has its name, so that a script can tell whom it answers."""
    return fixer(name=name, model=name, tools=list(tools), **options)


def asking(name: str, *questions: str) -> Turn:
    calls = tuple(tool_call(f"{name} {one}", f"ask_{name}", {"input": one}) for one in questions)
    return Turn(text="I ask.", tool_calls=calls)


def family(run: SteeredRun) -> Any:
    """A run's agent and outcome, and the same of the runs within it."""
    return (run.session.run.agent_name, run.outcome, [family(child) for child in run.children])


# ------------------------------------------------------------ where an agent runs


MADE_ID = re.compile(r"\b(msg|fc|rs|resp|chatcmpl)_[0-9a-f]{8}(?=[0-9]{6}\b)")
"""The part of a server's ids that no other server has; the number after it counts what it made."""


def body_of(asked: Asked) -> str:
    """A request's body as it was sent, in which the ids of two servers are the same."""
    return MADE_ID.sub(r"\1_", json.dumps(asked.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A scripted provider and a client of it; `way` says which of the SDK's functions runs agents, over which API."""

    server: ScriptedServer
    openai: AsyncOpenAI
    loop: asyncio.AbstractEventLoop
    way: str

    @property
    def requests(self) -> list[Asked]:
        return self.server.requests

    @property
    def guided(self) -> list[bool]:
        """Of each request, whether it holds guidance, wherever."""
        return ["[REASONBLOCKS]" in json.dumps(asked.body) for asked in self.requests]

    @property
    def bodies(self) -> list[str]:
        return [body_of(asked) for asked in self.requests]

    @property
    def provider(self) -> OpenAIProvider:
        return OpenAIProvider(openai_client=self.openai, use_responses=self.way.endswith("responses"))

    def config(self, **options: Any) -> RunConfig:
        return RunConfig(**{"model_provider": self.provider, "tracing_disabled": True, **options})

    def model(self, name: str) -> Model:
        kind = OpenAIResponsesModel if self.way.endswith("responses") else OpenAIChatCompletionsModel
        return kind(name, self.openai)

    def until(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def run(self, rb: ReasonBlocks, agent: Agent[Any], asked: Any = TASK, **options: Any) -> Result:
        """A steered run to its end."""
        given = {"run_config": self.config(), **options}
        if self.way.startswith("run_sync"):
            return openai_run_sync(rb, agent, asked, **given)
        return self.until(self.arun(rb, agent, asked, **given))

    async def arun(self, rb: ReasonBlocks, agent: Agent[Any], asked: Any = TASK, **options: Any) -> Result:
        given = {"run_config": self.config(), **options}
        if self.way.startswith("run_streamed"):
            return await read(openai_run_streamed(rb, agent, asked, **given))
        return await openai_run(rb, agent, asked, **given)

    def plain(self, agent: Agent[Any], asked: Any = TASK, **options: Any) -> Result:
        """A run by the SDK's own `Runner`."""
        given = {"run_config": self.config(), **options}
        if self.way.startswith("run_sync"):
            return Runner.run_sync(agent, asked, **given)
        return self.until(self.aplain(agent, asked, **given))

    async def aplain(self, agent: Agent[Any], asked: Any = TASK, **options: Any) -> Result:
        given = {"run_config": self.config(), **options}
        if self.way.startswith("run_streamed"):
            return await read(Runner.run_streamed(agent, asked, **given))
        return await Runner.run(agent, asked, **given)


async def read(result: RunResultStreaming) -> RunResultStreaming:
    """A streamed result whose stream was read to its end."""
    async for _ in result.stream_events():
        pass
    return result


@contextmanager
def plain_requests() -> Iterator[None]:
    """Let OpenAI's client send requests as the SDK gives them.

    The client walks through every item by its type, which takes a fifth of the time of these tests, and half a second
    at 60 steps. The items are JSON already, so that only what is not given has to go.
    """

    async def given(data: dict[str, Any], kind: object) -> dict[str, Any]:
        return {key: value for key, value in data.items() if is_given(value)}

    with pytest.MonkeyPatch.context() as patch:
        for module in (responses, completions):
            patch.setattr(module, "async_maybe_transform", given)
        yield


@contextmanager
def place(answer: Answer, way: str = "run/responses") -> Iterator[Place]:
    """The loop is this thread's, `Runner.run_sync`'s too: a client belongs to the loop of its first request."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with ScriptedServer(answer) as server, plain_requests(), warnings.catch_warnings():
        # `Runner.run_sync` of 0.18 shuts the loop's generators down after each run.
        warnings.filterwarnings("ignore", "asynchronous generator .* was scheduled after", ResourceWarning)
        plain = DefaultAsyncHttpxClient(verify=False)  # loading certificates takes longer than most of the runs
        openai = AsyncOpenAI(base_url=server.openai_url, api_key="none", max_retries=0, http_client=plain)
        try:
            yield Place(server=server, openai=openai, loop=loop, way=way)
        finally:
            loop.run_until_complete(_left_over())
            loop.run_until_complete(openai.close())
            loop.run_until_complete(loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            loop.close()


async def _left_over() -> None:
    """Ends what the SDK has left: 0.18 does not wait for a call that a guardrail cut off."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
