"""What steering adds to a run of the OpenAI Agents SDK: the same agent with and without it, in turn, in one process.

A third way gives the SDK a filter, a formatter and hooks that do nothing: what the SDK itself takes for them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from statistics import median, quantiles
from typing import Any

from agents import Agent, Model, ModelProvider, ModelResponse, RunConfig, RunHooks, Runner, Usage, function_tool
from agents.run_config import CallModelData, ModelInputData
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from reasonblocks import ReasonBlocks, Step
from reasonblocks_openai_agents import openai_run, openai_run_streamed

SEED = 20
WORDS = (
    "the a this that then first next after before again only other new last we it I need should check look read run "
    "try change add keep find test case value name list line file module function return result output parser config"
).split()
THOUGHT_WORDS = 100
RESULT_WORDS = 40
QUESTION = "Find out why the parser fails for an empty list and fix it."
AT_ONCE = 32
SCORER_SECONDS = 0.3
SCORED_CALLS = 3
"""Tool calls of a run whose every step that scorer judges."""
TICK_SECONDS = 0.001

Run = Callable[[int], Coroutine[Any, Any, None]]
"""Runs the agent once, with at most so many turns."""


def text(words: int, salt: str) -> str:
    return " ".join(random.Random(f"{SEED} {salt}").choices(WORDS, k=words))


class ScriptedModel(Model, ModelProvider):
    """Answers at once, from memory: a thought and one tool call `calls` times, then an answer. A delta a word."""

    def __init__(self, calls: int) -> None:
        self._answers = [response(at, calls=at < calls) for at in range(calls + 1)]
        self._deltas = [deltas(at) for at in range(calls + 1)]

    def get_model(self, model_name: str | None) -> Model:
        return self

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        output = self._answers[turn(*args, **kwargs)].output
        usage = Usage(requests=1, input_tokens=2_000, output_tokens=150, total_tokens=2_150)
        return ModelResponse(output=output, usage=usage, response_id=None)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        at = turn(*args, **kwargs)
        for delta in self._deltas[at]:
            yield delta
        yield ResponseCompletedEvent(response=self._answers[at], sequence_number=0, type="response.completed")


def turn(system_instructions: str | None, input: str | list[Any], *args: Any, **kwargs: Any) -> int:
    return sum(item.get("type") == "function_call_output" for item in input if isinstance(item, dict))


def response(at: int, *, calls: bool) -> Response:
    said = ResponseOutputText(text=text(THOUGHT_WORDS, f"thought {at}"), type="output_text", annotations=[])
    message = ResponseOutputMessage(id=f"m{at}", content=[said], role="assistant", status="completed", type="message")
    path = json.dumps({"path": f"src/module_{at}.py"})
    call = ResponseFunctionToolCall(arguments=path, call_id=f"call-{at}", name="read_file", type="function_call")
    output: list[ResponseOutputItem] = [message, call] if calls else [message]
    usage = ResponseUsage(
        input_tokens=2_000,
        input_tokens_details=InputTokensDetails.model_construct(cached_tokens=0),
        output_tokens=150,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=2_150,
    )
    return Response(
        id=f"r{at}",
        created_at=0,
        model="scripted",
        object="response",
        output=output,
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        usage=usage,
    )


def deltas(at: int) -> list[ResponseTextDeltaEvent]:
    words = text(THOUGHT_WORDS, f"thought {at}").split()
    kind = "response.output_text.delta"
    return [
        ResponseTextDeltaEvent.model_construct(
            content_index=0, delta=f"{word} ", item_id=f"m{at}", output_index=0, sequence_number=number, type=kind
        )
        for number, word in enumerate(words)
    ]


@function_tool
def read_file(path: str) -> str:
    """Reads a file."""
    return text(RESULT_WORDS, path)


async def as_it_is(data: CallModelData[Any]) -> ModelInputData:
    return data.model_data


# --- the ways to run the agent


def ways(calls: int, rb: ReasonBlocks, *, streamed: bool) -> dict[str, Run]:
    agent = Agent(name="bugfixer", instructions="You fix bugs.", model="scripted", tools=[read_file])
    model = ScriptedModel(calls)
    given = RunConfig(model_provider=model, tracing_disabled=True)
    idle = RunConfig(
        model_provider=model,
        tracing_disabled=True,
        call_model_input_filter=as_it_is,
        tool_error_formatter=lambda args: None,
    )

    async def plain(turns: int) -> None:
        await Runner.run(agent, QUESTION, run_config=given, max_turns=turns)

    async def hooks(turns: int) -> None:
        await Runner.run(agent, QUESTION, run_config=idle, hooks=RunHooks(), max_turns=turns)

    async def steered(turns: int) -> None:
        await openai_run(rb, agent, QUESTION, run_config=given, max_turns=turns)

    async def plain_streamed(turns: int) -> None:
        await read(Runner.run_streamed(agent, QUESTION, run_config=given, max_turns=turns))

    async def hooks_streamed(turns: int) -> None:
        await read(Runner.run_streamed(agent, QUESTION, run_config=idle, hooks=RunHooks(), max_turns=turns))

    async def steered_streamed(turns: int) -> None:
        await read(openai_run_streamed(rb, agent, QUESTION, run_config=given, max_turns=turns))

    if streamed:
        return {"plain": plain_streamed, "hooks": hooks_streamed, "steered": steered_streamed}
    return {"plain": plain, "hooks": hooks, "steered": steered}


async def read(result: Any) -> None:
    async for _ in result.stream_events():
        pass


# --- what is measured


async def seconds(work: Coroutine[Any, Any, object]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def in_turn(runs: dict[str, Run], calls: int, times: int) -> dict[str, list[float]]:
    """Microseconds a model call, of each run of each way. The first round is not counted."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times + 1):
        for name, run in runs.items():
            spent[name].append(await seconds(run(calls)) * 1e6 / calls)
    return {name: times_spent[1:] for name, times_spent in spent.items()}


def step_row(way: str, calls: int, times: int) -> dict[str, object]:
    runs = ways(calls - 1, ReasonBlocks(), streamed=way == "run_streamed")
    spent = asyncio.run(in_turn(runs, calls, times))
    plain, hooks, steered = spent["plain"], spent["hooks"], spent["steered"]
    added = [with_it - without for without, with_it in zip(plain, steered, strict=True)]
    return {
        "what": "step",
        "way": way,
        "calls": calls,
        "runs": times,
        "plain_us": round(median(plain), 1),
        "steered_us": round(median(steered), 1),
        "added_p50_us": round(median(added), 1),
        "added_p95_us": round(quantiles(added, n=20)[-1], 1),
        "idle_hooks_add_us": round(median(idle - without for without, idle in zip(plain, hooks, strict=True)), 1),
    }


async def together(run: Run, calls: int) -> None:
    await asyncio.gather(*(run(calls) for _ in range(AT_ONCE)))


async def together_in_turn(runs: dict[str, Run], calls: int, times: int) -> dict[str, float]:
    """Milliseconds until the last of the runs is done; the median."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times + 1):
        for name, run in runs.items():
            spent[name].append(await seconds(together(run, calls)) * 1e3)
    return {name: median(times_spent[1:]) for name, times_spent in spent.items()}


def at_once_row(way: str, calls: int, times: int) -> dict[str, object]:
    runs = ways(calls - 1, ReasonBlocks(), streamed=way == "run_streamed")
    took = asyncio.run(together_in_turn({name: runs[name] for name in ("plain", "steered")}, calls, times))
    return {
        "what": "at once",
        "way": way,
        "calls": calls,
        "runs": AT_ONCE,
        "times": times,
        "plain_ms": round(took["plain"], 1),
        "steered_ms": round(took["steered"], 1),
    }


def slow_scorer(step: Step) -> float:
    time.sleep(SCORER_SECONDS)
    return 0.5


async def longest_gap(work: Coroutine[Any, Any, object]) -> float:
    """The longest time, in milliseconds, for which the event loop did not get to anything else."""
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            gaps.append(await seconds(asyncio.sleep(TICK_SECONDS)) - TICK_SECONDS)

    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(0)
    await work
    ticking.cancel()
    return max(gaps) * 1e3


def gap_row(way: str, times: int) -> dict[str, object]:
    """The first run of a way stands apart: modules are loaded in it. The others give their longest."""
    calls = SCORED_CALLS + 1
    runs = ways(SCORED_CALLS, ReasonBlocks(scorer=slow_scorer), streamed=way == "run_streamed")
    gaps = {name: [asyncio.run(longest_gap(runs[name](calls))) for _ in range(times)] for name in ("plain", "steered")}
    return {
        "what": "loop gap",
        "way": way,
        "calls": calls,
        "runs": times,
        "scorer_ms": round(SCORER_SECONDS * 1e3),
        "plain_first_ms": round(gaps["plain"][0], 1),
        "steered_first_ms": round(gaps["steered"][0], 1),
        "plain_ms": round(max(gaps["plain"][1:]), 1),
        "steered_ms": round(max(gaps["steered"][1:]), 1),
    }


def measure(calls: int, runs: int) -> Iterator[dict[str, object]]:
    both = ("run", "run_streamed")
    yield from (gap_row(way, max(2, runs // 10)) for way in both)
    yield from (step_row(way, calls, runs) for way in both)
    yield from (at_once_row(way, calls, max(2, runs // 10)) for way in both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--calls", type=int, default=12, help="tool calls of one run (default 12)")
    parser.add_argument("--runs", type=int, default=40, help="runs of each way (default 40; a tenth of the long ones)")
    given = parser.parse_args()
    if not given.json:
        print("the agent and its tools included; the model answers at once, streamed in a delta a word\n")
    for row in measure(given.calls + 1, given.runs):
        print(json.dumps(row) if given.json else sentence(row), flush=True)


def sentence(row: dict[str, object]) -> str:
    pair = f"plain {row.get('plain_ms')} ms, steered {row.get('steered_ms')} ms"
    if row["what"] == "loop gap":
        first = f"in the first run {row['plain_first_ms']} ms, {row['steered_first_ms']} ms"
        return f"{row['way']}: longest gap of the loop, a scorer of {row['scorer_ms']} ms in each step: {pair}; {first}"
    if row["what"] == "at once":
        return f"{row['way']}: {row['runs']} runs of {row['calls']} calls at once: {pair}"
    return (
        f"{row['way']}: a call takes {row['plain_us']} us plain and {row['steered_us']} us steered; added p50 "
        f"{row['added_p50_us']} us, p95 {row['added_p95_us']} us; idle hooks add {row['idle_hooks_add_us']} us"
    )


if __name__ == "__main__":
    main()
