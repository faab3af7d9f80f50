"""Steers agents of the OpenAI Agents SDK: `rb.openai_run(...)` and its siblings, which call the functions here.

The options of a run, `run_id, agent_name, task, model, codebase_id, org_id, project_id, task_profile, metadata,
placement, mode, traceparent, experiment_id, unit_id, on_fraction`, are those of every adapter: `task` defaults to the
agent's input, `agent_name` and `model` to the agent's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from reasonblocks.adapters import RunKeywords, split_keywords

if TYPE_CHECKING:
    from agents import Agent, Model, RunResult, RunResultStreaming, Tool
    from agents.run_config import RunOptions as RunnerKeywords
    from typing_extensions import Unpack

    from reasonblocks import ReasonBlocks
    from reasonblocks.memory import CodebaseMemory

    from ._advisor import ask_model
    from ._hooks import RecordingHooks
    from ._run import AgentInput, Begun
    from ._steered import SteeredRun
    from ._steered_model import SteeredModel

    class SteeredRunKeywords(RunKeywords, RunnerKeywords[Any], total=False):
        """The options of a run, those of the SDK's `Runner.run`, and `snapshot`."""

        snapshot: Mapping[str, Any] | None


__all__ = [
    "RecordingHooks",
    "SteeredModel",
    "SteeredRun",
    "ask_model",
    "memory_tools",
    "openai_hooks",
    "openai_model",
    "openai_run",
    "openai_run_streamed",
    "openai_run_sync",
    "steering_of",
]

_HOMES = {
    "RecordingHooks": "_hooks",
    "ask_model": "_advisor",
    "SteeredModel": "_steered_model",
    "SteeredRun": "_steered",
}


async def openai_run(
    rb: ReasonBlocks, starting_agent: Agent[Any], input: AgentInput, **options: Unpack[SteeredRunKeywords]
) -> RunResult:
    """Run an agent as `Runner.run` does, steered. The arguments, the result and the errors are the SDK's.

    With `stop_when`, it also raises `RunStopped`. With `second_look`, the result covers both parts of the run.

    `steering_of` of the result, or of the raised error, returns the run: its step log, trace and outcome. To continue a
    run that waits for an approval, in any process, pass its `RunState` as `input` and `steering_of(result).snapshot()`
    as `snapshot`; the run keeps its id. Raises `ConfigError` for a wrong option of ours, also for a `run_id` that is
    not the snapshot's, and `SnapshotError` for a snapshot that cannot be read.
    """
    return await _begun(rb, "openai_run", starting_agent, input, options).to_its_end()


def openai_run_sync(
    rb: ReasonBlocks, starting_agent: Agent[Any], input: AgentInput, **options: Unpack[SteeredRunKeywords]
) -> RunResult:
    """Run an agent as `Runner.run_sync` does, steered as in `openai_run`."""
    return _begun(rb, "openai_run_sync", starting_agent, input, options).to_its_end_sync()


def openai_run_streamed(
    rb: ReasonBlocks, starting_agent: Agent[Any], input: AgentInput, **options: Unpack[SteeredRunKeywords]
) -> RunResultStreaming:
    """Run an agent as `Runner.run_streamed` does, steered as in `openai_run`. The run ends with its stream.

    If nobody reads the stream to its end, the run continues, as in the SDK, and is steered and recorded.
    """
    return _begun(rb, "openai_run_streamed", starting_agent, input, options).streamed()


def steering_of(source: RunResult | RunResultStreaming | BaseException) -> SteeredRun:
    """Return the run of a result, or of the error that a run raised.

    Raises `LookupError` for anything that does not come from `openai_run`, `openai_run_sync` or `openai_run_streamed`.
    """
    from ._run import steering_of

    return steering_of(source)


def openai_model(
    rb: ReasonBlocks,
    default_model: str | Model | None = None,
    model_factory: Callable[[str], Model] | None = None,
    **options: Unpack[RunKeywords],
) -> SteeredModel:
    """Return a model for `Agent(model=...)` whose calls are steered, streamed or not, also by the SDK's own `Runner`.

    `default_model` is the model behind it, the SDK's default if None. `model_factory` makes models from identifiers,
    its own and those of `model_routing`, in place of the SDK's `MultiProvider`. In `openai_run`, an agent that holds a
    model object needs it to be routed. In other runs it sees only requests: see `SteeredModel`. `run_id` names the
    first run, later ones "run_id.2", "run_id.3". Raises `ConfigError` for a wrong value.
    """
    from ._steered_model import SteeredModel

    own, _ = split_keywords("openai_model", options, ["default_model", "model_factory"])
    own.check(rb)
    return SteeredModel(rb, own, default_model, model_factory)


def openai_hooks(rb: ReasonBlocks, **options: Unpack[RunKeywords]) -> RecordingHooks:
    """Return hooks for `Runner.run(..., hooks=...)` that observe runs: they record what steering would decide.

    They serve any number of runs at once, and change nothing. Raises `ConfigError` for a wrong value, also for
    `mode="steer"` and for an experiment.
    """
    from ._hooks import RecordingHooks

    own, _ = split_keywords("openai_hooks", options)
    own.check(rb)
    return RecordingHooks(rb, own)


def memory_tools(memory: CodebaseMemory) -> list[Tool]:
    """Return the tools of a codebase's memory for `Agent(tools=[...])`.

    They are `memory_recall`, `memory_store` and `memory_forget`. A failed call returns a text about the error.
    """
    from reasonblocks.memory import memory_tools

    from ._memory import openai_tool

    return [openai_tool(tool) for tool in memory_tools(memory)]


def _begun(rb: ReasonBlocks, function: str, agent: Agent[Any], asked: AgentInput, keywords: Mapping[str, Any]) -> Begun:
    from agents.run_config import RunOptions as RunnerKeywords

    from ._run import begin

    options, given = split_keywords(
        function, keywords, ["starting_agent", "input", "snapshot", *RunnerKeywords.__annotations__]
    )
    snapshot = given.pop("snapshot", None)
    return begin(rb, options, agent, asked, snapshot, given)


def __getattr__(name: str) -> object:
    """Load the classes, which import the SDK, when they are first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


if "agents" in sys.modules:  # then loading the rest is cheap, and must not happen in an event loop
    from . import _run as _run
    from . import _steered_model as _steered_model
