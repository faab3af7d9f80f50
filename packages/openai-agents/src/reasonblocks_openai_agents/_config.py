"""Puts steering into the `RunConfig` of one run of the SDK: what it asks before a call, whom, and how tools fail."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agents import Agent, RunConfig
from agents.run_config import CallModelData, ModelInputData, ToolErrorFormatterArgs

from reasonblocks._formats.openai import Item
from reasonblocks.adapters import RunOptions

from ._calls import CALL
from ._convert import is_question, newest_call_id, task_of
from ._model import SteeredProvider
from ._routes import Routes
from ._start import SERVER_MANAGED, new_run, own_model, within
from ._steered import SteeredRun

if TYPE_CHECKING:
    from reasonblocks._client import ReasonBlocks


@dataclass(slots=True, kw_only=True)
class Steering:
    """Steers the calls of one `Runner.run`, or those of an agent that a tool of it calls (then it has a `parent`)."""

    rb: ReasonBlocks
    options: RunOptions
    config: RunConfig
    """The caller's."""
    routes: Routes
    owns_provider: bool = False
    """Whether its provider is nobody else's to close."""
    run: SteeredRun | None = None
    """None until the agent of a tool makes its first call."""
    parent: SteeredRun | None = None
    call_id: str = ""
    """Of the tool call that the agent answers."""

    @property
    def run_config(self) -> RunConfig:
        """The caller's, with ours around it."""
        return replace(
            self.config,
            model_provider=SteeredProvider(self.config.model_provider, self.routes, owned=self.owns_provider),
            call_model_input_filter=self._filter,
            tool_error_formatter=self._formatted,
        )

    def for_tool(self, call_id: str) -> RunConfig:
        """The configuration of an agent that this tool call may start: a run of its own."""
        child = Steering(
            rb=self.rb,
            options=within(self.options),
            config=self.config,
            routes=self.routes,
            parent=self.run,
            call_id=call_id,
        )
        return child.run_config

    async def _filter(self, data: CallModelData[Any]) -> ModelInputData:
        """The SDK asks it once before each call, not again when the call is retried. The caller's own goes first."""
        items = list(data.model_data.input)
        said = data.model_data
        if self.config.call_model_input_filter is not None:
            own = self.config.call_model_input_filter(data)
            said = await own if inspect.isawaitable(own) else own
        given: object = said
        if isinstance(given, ModelInputData):  # the SDK refuses anything else, and says why
            with self.rb.guard("steering a call"):
                return await self._steered(data.agent, items, said)
        return said

    async def _steered(self, agent: Agent[Any], items: list[Item], said: ModelInputData) -> ModelInputData:
        run = self._run_of(agent, items)
        CALL.set(None)
        call = await run.decide(items, agent_name=agent.name, own_model=own_model(agent, self.config))
        CALL.set(call)
        if call is None:
            return said
        instructions, asked = run.say(said.instructions, said.input, call.decision)
        return ModelInputData(input=asked, instructions=instructions)

    def _run_of(self, agent: Agent[Any], items: Sequence[Item]) -> SteeredRun:
        """The run that asks: this configuration's, or one of an agent that a tool within it calls.

        The SDK hands the configuration of an agent on to the agents of its tools, and calls our hooks for the root's.
        """
        home = self._home(agent, items)
        newest = CALL.get()
        if newest is not None and home.holds(newest.run):
            if newest.is_of_this_task:
                return newest.run
            return newest.run.within(items, lambda call_id: self._child(agent, items, newest.run, call_id))
        # After an approval the SDK goes on inside a tool without a word to our hooks; a tool may run several agents.
        answered = newest_call_id(items)
        if answered not in home.waits_for and (waiting := (self.parent or home).waiting(answered, items)) is not None:
            return waiting
        if self.parent is None and home.agent_name not in (None, agent.name):
            return home.within(items, lambda call_id: self._child(agent, items, home, None))
        return home

    def _home(self, agent: Agent[Any], items: Sequence[Item]) -> SteeredRun:
        """This configuration's run. A tool that hands it on to several agents itself has one for each of them."""
        if self.run is None and self.parent is not None:
            self.run = self.parent.child(self.call_id, lambda: self._child(agent, items, self.parent, self.call_id))
        elif self.run is not None and self.parent is not None and is_question(items) and not self.run.waits_for:
            self.run = self.parent.adopt(self._child(agent, items, self.parent, self.call_id))
        assert self.run is not None  # the root's is given
        return self.run

    def _child(
        self, agent: Agent[Any], items: Sequence[Item], parent: SteeredRun | None, call_id: str | None
    ) -> SteeredRun:
        """In the instructions only: whether the server keeps that agent's conversation is not to be seen."""
        return new_run(
            self.rb,
            self.options,
            agent_name=agent.name,
            task=task_of(items),
            model=own_model(agent, self.config),
            caps=SERVER_MANAGED,
            parent=parent,
            parent_call_id=call_id,
        )

    async def _formatted(self, args: ToolErrorFormatterArgs[Any]) -> str | None:
        """Record that a call failed, for the run in whose task the SDK asks; the text is not ours.

        If that run is unknown, after an approval, the call's id identifies it.
        """
        newest = CALL.get()
        asks = newest is not None and args.call_id in newest.waits_for and not newest.run.over
        for run in (newest.run,) if newest is not None and asks else (self.run, self.parent):
            if run is not None:
                run.tools.fail(args.call_id)
        if self.config.tool_error_formatter is None:
            return None
        own = self.config.tool_error_formatter(args)
        return await own if inspect.isawaitable(own) else own
