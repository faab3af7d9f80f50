"""Hooks of the SDK: those of a steered run, and those of a run that is only recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agents import Agent, RunConfig, RunHooks
from agents.items import ModelResponse
from agents.run_context import RunContextWrapper
from agents.tool_context import ToolContext

from reasonblocks.adapters import Newest, RunOptions, Runs, SteeringHandle, adrive
from reasonblocks.exceptions import ConfigError
from reasonblocks.messages.openai import Item

from ._config import new_run, own_model
from ._convert import newest_call_id, task_of
from ._steered import SteeredRun, next_of, with_waiting

if TYPE_CHECKING:
    from reasonblocks import ReasonBlocks

MAX_WAITING = 4_096
"""Tool calls by which recorded runs are known that go on with another context."""
Context = RunContextWrapper[Any]
ForTool = Callable[[str], RunConfig]
"""The configuration for an agent that a tool call may start, by the call's id."""


class HooksOfRun(RunHooks[Any]):
    """Calls our hooks for one steered run, then the caller's."""

    def __init__(self, run: SteeredRun, for_tool: ForTool, own: RunHooks[Any] | None) -> None:
        self._run = run
        self._for_tool = for_tool
        self._own: RunHooks[Any] = own or RunHooks()

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self._run.agent_name = agent.name
        await self._own.on_agent_start(context, agent)

    async def on_handoff(self, context: Context, from_agent: Any, to_agent: Any) -> None:
        self._run.agent_name = to_agent.name
        await self._own.on_handoff(context, from_agent, to_agent)

    async def on_llm_end(self, context: Context, agent: Agent[Any], response: ModelResponse) -> None:
        """Record the answer of a model object that the agent holds itself, which no wrapper of ours has seen."""
        if (call := self._run.call) is not None:
            call.answer(response.output, response.usage)
        await self._own.on_llm_end(context, agent, response)

    async def on_tool_start(self, context: Context, agent: Any, tool: Any) -> None:
        if isinstance(context, ToolContext):
            with self._run.session.guard("starting a tool"):
                self._run.tools.begin(context.tool_call_id)
                context.run_config = self._for_tool(context.tool_call_id)
        await self._own.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Context, agent: Any, tool: Any, result: Any) -> None:
        if isinstance(context, ToolContext):
            with self._run.session.guard("ending a tool"):
                self._run.tools.end(context.tool_call_id, result)
                await self._run.child_ended(context.tool_call_id, result)
        await self._own.on_tool_end(context, agent, tool, result)


def _forwarded(name: str) -> Callable[..., Any]:
    async def forward(self: HooksOfRun, *args: Any, **kwargs: Any) -> None:
        await getattr(self._own, name)(*args, **kwargs)

    return forward


for _name in dir(RunHooks):  # all other hooks, those of newer versions included
    if _name.startswith("on_") and _name not in vars(HooksOfRun):
        setattr(HooksOfRun, _name, _forwarded(_name))


class RecordingHooks(SteeringHandle[SteeredRun], RunHooks[Any]):
    """Observes runs, as `Runner.run(..., hooks=...)`. Made by `rb.openai_hooks(...)`.

    It changes no request. The SDK calls no hook when a run fails: such a run stays open until `close()`.
    """

    def __init__(self, rb: ReasonBlocks, options: RunOptions) -> None:
        if options.mode == "steer":
            raise ConfigError("mode", options.mode, "hooks of the SDK cannot change a request: leave it out")
        if options.experiment_id is not None:
            rule = "hooks of the SDK cannot change a request, so that no run would be on: use openai_run"
            raise ConfigError("experiment_id", options.experiment_id, rule)
        self._rb = rb
        self._options = replace(options, mode="observe")
        self._runs = Runs(options.run_id)
        self._by_context: WeakKeyDictionary[Context, SteeredRun] = WeakKeyDictionary()
        self._waiting: Newest[str, tuple[SteeredRun, ...]] = Newest(MAX_WAITING)

    async def on_llm_start(
        self, context: Context, agent: Agent[Any], system_prompt: str | None, input_items: list[Item]
    ) -> None:
        if self._rb.disabled:
            return
        with self._rb.guard("recording a call"):
            run = self._by_context.get(context) or self._resumed(context, input_items)
            run = run or self._begun(context, agent, input_items)
            await run.decide(input_items, agent_name=agent.name, own_model=own_model(agent))

    async def on_llm_end(self, context: Context, agent: Agent[Any], response: ModelResponse) -> None:
        run = self._by_context.get(context)
        if run is not None and run.call is not None:
            run.call.answer(response.output, response.usage)
            for call_id in run.waits_for:
                self._waiting.keep(call_id, with_waiting(self._waiting.get(call_id, ()), call_id, run))

    async def on_tool_start(self, context: Context, agent: Any, tool: Any) -> None:
        if isinstance(context, ToolContext) and (run := self._run_of(context, agent, context.tool_call_id)) is not None:
            run.tools.begin(context.tool_call_id)

    async def on_tool_end(self, context: Context, agent: Any, tool: Any, result: Any) -> None:
        if isinstance(context, ToolContext) and (run := self._run_of(context, agent, context.tool_call_id)) is not None:
            with self._rb.guard("ending a tool"):
                run.tools.end(context.tool_call_id, result)

    async def on_handoff(self, context: Context, from_agent: Any, to_agent: Any) -> None:
        if (run := self._by_context.get(context)) is not None:
            run.agent_name = to_agent.name

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        if (run := self._run_of(context, agent)) is not None:
            with self._rb.guard("finishing a run"):
                await adrive(run.ends())

    def _begun(self, context: Context, agent: Agent[Any], items: list[Item]) -> SteeredRun:
        run = new_run(
            self._rb,
            self._options,
            run_id=self._runs.new_id(),
            agent_name=agent.name,
            task=task_of(items),
            model=own_model(agent),
        )
        self._by_context[context] = run
        return self._runs.add(run)

    def _resumed(self, context: Context, items: list[Item]) -> SteeredRun | None:
        """Return the run that waited for an approval: newer versions of the SDK resume it with another context."""
        waiting = self._waiting.get(newest_call_id(items) or "", ())
        run = next_of((run for run in waiting if not run.over), items)
        if run is None:
            return None
        self._by_context[context] = run
        return run

    def _run_of(self, context: Context, agent: Any, call_id: str | None = None) -> SteeredRun | None:
        """Return the open run of a hook whose context is not the model's, found by its usage and agent.

        If several agents of tools match, it is the run that waits for this call, or the one whose turn it is.
        """
        fits = [
            (of, run)
            for of, run in reversed(list(self._by_context.items()))
            if of.usage is context.usage and run.agent_name == agent.name and not run.over
        ]
        for of, run in fits:
            if call_id in run.waits_for if call_id else of.turn_input is context.turn_input:
                return run
        return fits[0][1] if fits else None
