"""Begins steered runs, and steers the calls of a `Runner.run` through its `RunConfig`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agents import Agent, Model, RunConfig
from agents.models import get_default_model
from agents.run_config import CallModelData, ModelInputData, ToolErrorFormatterArgs

from reasonblocks.adapters import RoutedModels, RunOptions, model_name
from reasonblocks.exceptions import ConfigError, SnapshotError
from reasonblocks.messages.openai import Item
from reasonblocks.types import AdapterCaps

from ._convert import is_question, newest_call_id, task_of
from ._model import SteeredProvider
from ._request import unsteer_items
from ._steered import CALL, SteeredRun, calling_run

if TYPE_CHECKING:
    from reasonblocks import ReasonBlocks

FRAMEWORK = "openai-agents"
CAPS = AdapterCaps(effort=True)
SERVER_MANAGED = AdapterCaps(placements=frozenset({"system"}), second_look=False, effort=True)
"""For a conversation that the server keeps: a message of ours at its end would be stored with it.

It cannot go on after its last answer either, because each of its requests has to bring something new.
"""
NESTED = AdapterCaps(placements=frozenset({"system"}), effort=True)
"""For an agent in a tool. Nobody asks for its second look, and a warning for each of them would say nothing new."""
ONLY_REQUESTS = AdapterCaps(second_look=False, effort=True)
"""For a model that sees only requests: it cannot make an agent go on."""


def new_run(
    rb: ReasonBlocks,
    options: RunOptions,
    *,
    agent_name: str,
    task: str,
    model: str,
    run_id: str | None = None,
    caps: AdapterCaps = CAPS,
    snapshot: Mapping[str, Any] | None = None,
    parent: SteeredRun | None = None,
    parent_call_id: str | None = None,
    session_id: str | None = None,
) -> SteeredRun:
    """Begin a run, or resume it from a snapshot. Raises `ConfigError`, `SnapshotError`.

    The guidance of a run with a `parent` is always in its instructions, whatever its caller requested; this is not
    logged.
    """
    if caps is SERVER_MANAGED and options.placement == "tail" and parent is None:
        raise ConfigError("placement", "tail", "the server would store it in this conversation: use 'system'")
    caller = parent or calling_run()
    session = options.session(
        rb,
        framework=FRAMEWORK,
        run_id=run_id,
        agent_name=agent_name,
        task=task,
        model=model,
        caps=caps,
        snapshot=snapshot,
        parent_run_id=caller.run_id if caller else None,
        parent_call_id=parent_call_id,
        session_id=session_id,
        placement="system" if parent is not None else None,
    )
    run = SteeredRun(
        session,
        agent_name=agent_name or None,
        model_routing=rb.model_routing,
        server_managed="tail" not in caps.placements,
        resumed=snapshot is not None,
        waits_for=[str(call_id) for call_id in _list_in(snapshot, "waits_for")],
        user_text=str((snapshot or {}).get("user_text", "")),
    )
    for child in _list_in(snapshot, "children"):
        run.adopt(_resumed(rb, options, child, run))
    return run


def options_within(options: RunOptions) -> RunOptions:
    """Return the options of an agent that a tool calls: its name, its task and its model are its own."""
    return replace(options, run_id=None, agent_name=None, task=None, model=None, placement=None)


def _resumed(rb: ReasonBlocks, options: RunOptions, kept: object, parent: SteeredRun) -> SteeredRun:
    if not isinstance(kept, Mapping):
        raise SnapshotError("children", kept, "must be JSON objects")
    return new_run(
        rb,
        options_within(options),
        agent_name=str(kept.get("agent_name") or ""),
        task=str(kept.get("task") or ""),
        model=str(kept.get("model") or ""),
        caps=NESTED,
        snapshot=kept.get("snapshot") or {},
        parent=parent,
        parent_call_id=kept.get("parent_call_id"),
    )


def _list_in(snapshot: Mapping[str, Any] | None, name: str) -> list[Any]:
    found = (snapshot or {}).get(name, [])
    if not isinstance(found, list):
        raise SnapshotError(name, found, "must be a list")
    return found


def own_model(agent: Agent[Any], config: RunConfig | None = None) -> str:
    """Return the name of the model that this agent calls by itself."""
    wanted = (config.model if config else None) or agent.model
    if isinstance(wanted, Model):
        return model_name(wanted)
    return wanted or get_default_model()


@dataclass(slots=True, kw_only=True)
class Steering:
    """Steers the calls of one `Runner.run`, or those of an agent in one of its tools (then it has a `parent`)."""

    rb: ReasonBlocks
    options: RunOptions
    config: RunConfig
    """The caller's."""
    routed: RoutedModels[Model]
    owns_provider: bool = False
    """True if the provider is ours to close."""
    run: SteeredRun | None = None
    """None until the agent of a tool makes its first call."""
    parent: SteeredRun | None = None
    call_id: str = ""
    """The id of the tool call that the agent answers."""

    @property
    def run_config(self) -> RunConfig:
        """The caller's configuration, with ours around it."""
        return replace(
            self.config,
            model_provider=SteeredProvider(self.config.model_provider, self.routed, owned=self.owns_provider),
            call_model_input_filter=self._filter,
            tool_error_formatter=self._formatted,
        )

    def for_tool(self, call_id: str) -> RunConfig:
        """Return the configuration for an agent that this tool call may start: a run of its own."""
        child = Steering(
            rb=self.rb,
            options=options_within(self.options),
            config=self.config,
            routed=self.routed,
            parent=self.run,
            call_id=call_id,
        )
        return child.run_config

    async def _filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Steer a request after the caller's own filter. The SDK calls it once a call, not before retries."""
        items = list(data.model_data.input)
        filtered = data.model_data
        if self.config.call_model_input_filter is not None:
            own = self.config.call_model_input_filter(data)
            filtered = await own if inspect.isawaitable(own) else own
        given: object = filtered
        if isinstance(given, ModelInputData):  # the SDK raises for anything else
            with self.rb.guard("steering a call"):
                return await self._steered(data.agent, items, filtered)
        return filtered

    async def _steered(self, agent: Agent[Any], items: list[Item], filtered: ModelInputData) -> ModelInputData:
        run = self.run_of(agent, items)
        CALL.set(None)
        call = await run.decide(items, agent_name=agent.name, own_model=own_model(agent, self.config))
        CALL.set(call)
        if call is None:
            return filtered
        if run.session.observes:
            return filtered
        call.unsteered = unsteer_items(filtered.instructions, filtered.input, call.decision)
        instructions, steered_input = run.say(filtered.instructions, filtered.input, call.decision)
        return ModelInputData(input=steered_input, instructions=instructions)

    def run_of(self, agent: Agent[Any], items: Sequence[Item]) -> SteeredRun:
        """Return the run that makes this request; the first rule that applies decides.

        | the request comes from | run |
        |---|---|
        | the task of this run's, or a nested run's, newest decided call | that call's run |
        | a task that such a call has started: an agent in a tool of it | a child of that call's run |
        | anywhere, after an approval: it has the result of a call that another run waits for | that run |
        | another agent than the root's: a tool that the SDK resumed | a child of the root's run |
        | anywhere else | this configuration's run |

        The SDK hands the configuration of an agent on to the agents of its tools, and calls our hooks for the root's.
        """
        own = self._own_run(agent, items)
        newest = CALL.get()
        if newest is not None and own.holds(newest.run):
            if newest.is_of_this_task:
                return newest.run
            return newest.run.child_asking(items, lambda call_id: self._child(agent, items, newest.run, call_id))
        # After an approval the SDK continues inside a tool without calling our hooks; a tool may run several agents.
        answered = newest_call_id(items)
        if answered not in own.waits_for and (waiting := (self.parent or own).waiting(answered, items)) is not None:
            return waiting
        if self.parent is None and own.agent_name not in (None, agent.name):
            return own.child_asking(items, lambda call_id: self._child(agent, items, own, None))
        return own

    def _own_run(self, agent: Agent[Any], items: Sequence[Item]) -> SteeredRun:
        """Return this configuration's run. A tool that passes it to several agents has a run for each of them."""
        if self.run is None and self.parent is not None:
            self.run = self.parent.child(self.call_id, lambda: self._child(agent, items, self.parent, self.call_id))
        elif self.run is not None and self.parent is not None and is_question(items) and not self.run.waits_for:
            self.run = self.parent.adopt(self._child(agent, items, self.parent, self.call_id))
        assert self.run is not None  # the root's is given
        return self.run

    def _child(
        self, agent: Agent[Any], items: Sequence[Item], parent: SteeredRun | None, call_id: str | None
    ) -> SteeredRun:
        """Return the run of a nested agent.

        Its guidance goes into the instructions only: we cannot tell whether the server stores the conversation.
        """
        return new_run(
            self.rb,
            self.options,
            agent_name=agent.name,
            task=task_of(items),
            model=own_model(agent, self.config),
            caps=NESTED,
            parent=parent,
            parent_call_id=call_id,
        )

    async def _formatted(self, args: ToolErrorFormatterArgs[Any]) -> str | None:
        """Record that a call failed, for the run in whose task the SDK formats the error. Leaves the text to the SDK.

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
