"""The harness: runs scripts on real agents of yourframework with a scripted model, without a network."""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any

from reasonblocks import ReasonBlocks
from reasonblocks.render import FRAME
from reasonblocks.types import StepLogEntry
from reasonblocks_testing import Ran, Script, Seen, Turn
from reasonblocks_yourframework import CAPS, Steering, yourframework

# YOURS: the types of your framework.
from tinyagents import Agent, Call, Hooks, Message, Request, Run, Tool


def task_in(texts: Sequence[str]) -> str:
    """Return the task, without guidance that has joined it."""
    return texts[0].partition(f"\n\n{FRAME}")[0]


class World:
    """The scripted model and tools in the framework's types, and the requests that the model received."""

    def __init__(self, *scripts: Script, hold_at: int | None = None, forgets: bool = False) -> None:
        self.script = scripts[0]
        self.seen: list[Seen] = []
        self.held = asyncio.Event()
        self._hold_at = hold_at
        self._forgets = forgets
        self._by_task = {script.task: script for script in scripts}
        self._results = {key: result for script in scripts for key, result in script.results.items()}
        self._failures = {at: turn.failures for at, turn in enumerate(self.script.turns)}

    async def ask(self, request: Request) -> Message:
        """The scripted model. It finds its turn by the history, and its script by the first message."""
        at = len(self.seen) if self._forgets else sum(message.role == "assistant" for message in request.messages)
        if at == self._hold_at:
            self.held.set()
            await asyncio.Event().wait()
        texts = tuple(message.text for message in request.messages)
        roles = tuple(message.role for message in request.messages)
        seen = Seen(model=request.model, system=request.instructions or "", texts=texts, roles=roles, raw=repr(request))
        self.seen.append(seen)
        if self._failures[at]:
            self._failures[at] -= 1
            raise ConnectionError("try again")
        turn = self._by_task.get(task_in(texts), self.script).turns[at]
        if turn.error is not None:
            raise turn.error
        return answer(turn)

    async def tool(self, call: Call) -> Message:
        """The scripted tool: return the result with the call's id."""
        result = self._results[call.id]
        return Message("tool", result.output, call_id=call.id, failed=result.is_error)

    def agent(self, hooks: Hooks, **options: Any) -> Agent:
        tools: dict[str, Tool] = dict.fromkeys(self.script.tools, self.tool)
        return Agent(
            ask=self.ask,
            model=self.script.model,
            tools={**tools, **options.pop("tools", {})},
            instructions=self.script.system_prompt,
            name=self.script.agent_name,
            hooks=hooks,
            attempts=1 + max(self._failures.values()),
            shortened=newest_step if self._forgets else tuple,
            **options,
        )


def answer(turn: Turn) -> Message:
    calls = tuple(Call(call.id, call.name, dict(call.arguments)) for call in turn.tool_calls)  # type: ignore[arg-type]
    used = turn.usage
    counts = {
        "input": used.input,
        "output": used.output,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
    }
    return Message("assistant", turn.text, thinking=turn.reasoning, calls=calls, tokens=counts)


def newest_step(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the task and the newest step."""
    newest = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=1)
    return (messages[0], *messages[newest:])


def started(script: Script, run_id: str | None = None) -> Run:
    return Run(run_id or script.run_id, [Message("user", script.task)])


async def acall(agent: Agent, mode: str, run: Run) -> None:
    if mode == "stream":
        async for _ in agent.stream(run):
            pass
    else:
        await agent.run(run)


def call(agent: Agent, mode: str, run: Run) -> None:
    if mode == "run_sync":
        agent.run_sync(run)
    else:
        asyncio.run(acall(agent, mode, run))


class YourFrameworkHarness:
    """Runs scripts on agents of yourframework, in each mode."""

    modes: tuple[str, ...] = ("run", "run_sync", "stream")  # YOURS: every public way to run an agent
    caps = CAPS

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        world = World(script)
        if resume_at:
            return [self._in_parts(rb, world, mode, resume_at)]
        steering = yourframework(rb)
        agent = world.agent(steering)
        ids = (script.run_id, *(f"{script.run_id}.{at}" for at in range(2, times + 1)))
        return [self._once(steering, agent, world, mode, started(script, run_id)) for run_id in ids]

    def _once(self, steering: Steering, agent: Agent, world: World, mode: str, run: Run) -> Ran:
        before = len(world.seen)
        error: Exception | None = None
        try:
            call(agent, mode, run)
        except Exception as exc:  # noqa: BLE001 - a harness returns any exception of the agent
            error = exc
        done = ran(steering, run.id, world.seen[before:], history=run.messages, error=error)
        return replace(done, agent_model=agent.model)

    def _in_parts(self, rb: ReasonBlocks, world: World, mode: str, resume_at: Sequence[int]) -> Ran:
        """Run each part with a new agent, new steering and a run read back from JSON, as in another process."""

        def waits(run: Run) -> bool:
            return sum(message.role == "assistant" for message in run.messages) in resume_at

        run, log = started(world.script), list[StepLogEntry]()
        for part in count(1):
            steering = yourframework(rb)
            call(world.agent(steering, waits_before=waits), mode, run)
            log += steering.step_log
            if not run.waits:
                return replace(ran(steering, run.id, world.seen, log, run.messages), parts=part)
            run = Run(run.id, list(run.messages), json.loads(json.dumps(run.state)))
        raise AssertionError("a run ends")

    def run_unsteered(self, script: Script, mode: str) -> Sequence[Seen]:
        world = World(script)
        call(world.agent(Hooks()), mode, started(script))
        return world.seen

    def run_shortened(self, rb: ReasonBlocks, script: Script, mode: str) -> Ran:
        world, steering = World(script, forgets=True), yourframework(rb)
        return self._once(steering, world.agent(steering), world, mode, started(script))

    def run_at_once(self, rb: ReasonBlocks, scripts: Sequence[Script], mode: str) -> list[Ran]:
        world, steering = World(*scripts), yourframework(rb)
        agent, runs = world.agent(steering), [started(script) for script in scripts]

        async def together() -> None:
            await asyncio.gather(*(acall(agent, mode, run) for run in runs))

        if mode == "run_sync":
            with ThreadPoolExecutor(len(runs)) as pool:
                list(pool.map(agent.run_sync, runs))
        else:
            asyncio.run(together())
        return [ran(steering, run.id, world.seen) for run in runs]

    async def arun(self, rb: ReasonBlocks, script: Script) -> Ran:
        world, steering = World(script), yourframework(rb)
        await world.agent(steering).run(started(script))
        return ran(steering, script.run_id, world.seen)

    def run_nested(self, rb: ReasonBlocks, outer: Script, inner: Script, mode: str) -> tuple[Ran, Ran]:
        steering = yourframework(rb)
        outside, inside = World(outer), World(inner)
        child = inside.agent(steering)

        async def delegate(call: Call) -> Message:
            await child.run(started(inner))
            return Message("tool", "inner is done", call_id=call.id)

        call(outside.agent(steering, tools={"delegate": delegate}), mode, started(outer))
        return ran(steering, outer.run_id, outside.seen), ran(steering, inner.run_id, inside.seen)

    def run_cancelled(self, rb: ReasonBlocks, script: Script, at: int) -> Ran:
        async def cancelled() -> Ran:
            world, steering = World(script, hold_at=at), yourframework(rb)
            task = asyncio.ensure_future(world.agent(steering).run(started(script)))
            await world.held.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return ran(steering, script.run_id, world.seen, error=asyncio.CancelledError())

        return asyncio.run(cancelled())

    def handwork(self, rb: ReasonBlocks) -> Callable[[int], None]:
        """Return a function that executes the hooks alone, on a history that grows by a step with each call."""
        steering = yourframework(rb)
        said = Message("assistant", "I look at the next file and note what it says.")
        run = Run("run", [Message("user", "Look at every file.")])

        async def ask(request: Request) -> Message:
            return said

        async def one_step() -> None:
            request = Request("agent-model", None, run.messages)
            run.messages.append(await steering.around_call(agent, run, request, ask))

        agent = Agent(ask=ask, model="agent-model", tools={}, hooks=steering)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(steering.run_starts(agent, run))

        def step(call: int) -> None:
            loop.run_until_complete(one_step())

        weakref.finalize(step, loop.close)
        return step


def ran(
    steering: Steering,
    run_id: str,
    seen: Sequence[Seen],
    log: Sequence[StepLogEntry] = (),
    history: Sequence[Message] = (),
    error: BaseException | None = None,
) -> Ran:
    run = steering.runs[run_id]
    return Ran(
        run_id=run_id,
        seen=tuple(seen),
        log=list({entry.step: entry for entry in (*log, *run.step_log)}.values()),
        final=run.final,
        outcome=run.outcome,
        history=tuple(message.text for message in history),
        error=error,
        parent_run_id=run.run.parent_run_id,
        parent_call_id=run.run.parent_call_id,
        snapshot=dict(run.trace.snapshot()),
    )
