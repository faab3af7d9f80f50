"""Steered counterparts of the SDK's `Runner` methods: begin each run, and follow it to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents import Agent, AgentsException, MaxTurnsExceeded, RunConfig, Runner, RunResult, RunResultStreaming, RunState
from agents.lifecycle import RunHooksBase
from agents.stream_events import StreamEvent

from reasonblocks._formats.openai import Item
from reasonblocks.adapters import RoutedModels, RunOptions, SteeringFlow, adrive, drive

from ._config import CAPS, SERVER_MANAGED, Steering, new_run, own_model
from ._convert import task_of
from ._hooks import HooksOfRun
from ._model import as_model
from ._steered import CALL, SteeredRun

if TYPE_CHECKING:
    from reasonblocks import ReasonBlocks

MARK = "_reasonblocks_run"
"""The attribute that holds our run, of the SDK's results and of the errors that a run raised."""
SERVER_KEEPS = ("conversation_id", "previous_response_id", "auto_previous_response_id")
"""Arguments of `Runner.run`, also kept in a `RunState`, with which the server stores the conversation."""

AgentInput = str | list[Item] | RunState[Any, Any]


@dataclass(frozen=True, slots=True)
class Begun:
    """One call of `Runner.run` and its arguments: the caller's own after a fault of ours or while steering is off."""

    agent: Agent[Any]
    asked: AgentInput
    given: Mapping[str, Any]
    run: SteeredRun

    async def to_its_end(self) -> RunResult:
        with _calls_of_its_own():
            try:
                result = await Runner.run(self.agent, self.asked, **self.given)
            except BaseException as exc:
                await adrive(self._raised(exc))
                raise
            await adrive(self._returned(result))
        return result

    def to_its_end_sync(self) -> RunResult:
        try:
            result = Runner.run_sync(self.agent, self.asked, **self.given)
        except BaseException as exc:
            drive(self._raised(exc))
            raise
        drive(self._returned(result))
        return result

    def streamed(self) -> RunResultStreaming:
        result = Runner.run_streamed(self.agent, self.asked, **self.given)
        self._marks(result)
        if (loop := result.run_loop_task) is not None:
            result.run_loop_task = asyncio.create_task(self._followed(loop, result))
            result.run_loop_task.add_done_callback(lambda ours: loop.cancel() if ours.cancelled() else None)
        self._heard(result)
        return result

    def _heard(self, result: RunResultStreaming) -> None:
        """Finish the run with the error that the stream raises: some guardrails are reported nowhere else."""
        events = result.stream_events

        async def stream_events() -> AsyncIterator[StreamEvent]:
            try:
                async with aclosing(cast("AsyncGenerator[StreamEvent]", events())) as stream:
                    async for event in stream:
                        yield event
            except Exception as exc:
                await adrive(self._raised(exc))
                raise

        result.stream_events = stream_events  # type: ignore[method-assign]

    async def _followed(self, loop: asyncio.Task[Any], result: RunResultStreaming) -> Any:
        """Return the loop's result and finish the run. The SDK waits for this task in place of its own.

        So the run is over when its stream is. The task continues if nobody reads the stream any more.
        """
        try:
            value = await loop
        except BaseException as exc:
            await adrive(self._raised(exc))
            raise
        if _out_of_turns(result):
            await adrive(self._raised(MaxTurnsExceeded(f"Max turns ({result.max_turns}) exceeded")))
        else:
            await adrive(self._returned(result))
        return value

    def _raised(self, error: BaseException) -> SteeringFlow[None]:
        self._marks(error)
        return self.run.fails(error)

    def _returned(self, result: RunResult | RunResultStreaming) -> SteeringFlow[None]:
        self._marks(result)
        if result.interruptions or _stopped(result, self.run):
            self.run.pause()
        else:
            yield from self.run.ends([item.raw_item for item in result.new_items])

    def _marks(self, where: object) -> None:
        with suppress(AttributeError):
            setattr(where, MARK, self.run)


def steering_of(source: object) -> SteeredRun:
    """Return the run of a result or of a raised error. Raises `LookupError` for anything else."""
    run = getattr(source, MARK, None)
    if not isinstance(run, SteeredRun):
        kind = type(source).__name__
        raise LookupError(f"this {kind} is of no steered run: give what openai_run returned, awaited, or raised")
    return run


def begin(
    rb: ReasonBlocks,
    options: RunOptions,
    agent: Agent[Any],
    asked: AgentInput,
    snapshot: Mapping[str, Any] | None,
    given: Mapping[str, Any],
) -> Begun:
    """Raise `ConfigError` for a wrong option, `SnapshotError` for a snapshot that cannot be read."""
    options.check(rb, snapshot)
    config = _config(given.get("run_config"))
    run = _run(rb, options, agent, asked, snapshot, given, config)
    hooks = given.get("hooks")
    if rb.disabled or config is None or not isinstance(hooks, RunHooksBase | None):
        return Begun(agent, asked, given, run)  # the SDK raises for wrong ones
    steering = Steering(
        rb=rb,
        options=options,
        config=config,
        routed=RoutedModels(as_model),
        owns_provider=_names_no_provider(given.get("run_config")),
        run=run,
    )
    ours = {"run_config": steering.run_config, "hooks": HooksOfRun(run, steering.for_tool, hooks)}
    return Begun(agent, asked, {**given, **ours}, run)


def _run(
    rb: ReasonBlocks,
    options: RunOptions,
    agent: Agent[Any],
    asked: AgentInput,
    snapshot: Mapping[str, Any] | None,
    given: Mapping[str, Any],
    config: RunConfig | None,
) -> SteeredRun:
    state = asked if isinstance(asked, RunState) else None
    first = getattr(state, "_current_agent", None) or agent
    kept = any(given.get(name) or getattr(state, f"_{name}", None) for name in SERVER_KEEPS)
    return new_run(
        rb,
        options,
        agent_name=first.name,
        task=task_of(asked if not isinstance(asked, RunState) else getattr(state, "_original_input", "")),
        model=own_model(first, config),
        caps=SERVER_MANAGED if kept else CAPS,
        snapshot=snapshot,
        session_id=_session_id(given),
    )


def _session_id(given: Mapping[str, Any]) -> str | None:
    with suppress(Exception):  # a property may raise: the SDK's conversations have no id before their first request
        found = getattr(given.get("session"), "session_id", None) or given.get("conversation_id")
        return str(found) if found else None
    return None


def _config(given: object) -> RunConfig | None:
    """Return the caller's `RunConfig`, None for a wrong one. Newer versions of the SDK also accept a dictionary."""
    if given is None:
        return RunConfig()
    if isinstance(given, Mapping):
        with suppress(TypeError, ValueError, AgentsException):
            return RunConfig(**given)
        return None
    return given if isinstance(given, RunConfig) else None


def _names_no_provider(config: object) -> bool:
    """Return True if the SDK would make the provider itself: then we make it, and close it after the run."""
    return config is None or (isinstance(config, Mapping) and "model_provider" not in config)


def _out_of_turns(result: RunResultStreaming) -> bool:
    """Return True if the turns are used up: the SDK's loop then ends, and only the stream's reader sees the error."""
    most: int | None = result.max_turns
    return most is not None and result.current_turn > most and result.final_output is None


def _stopped(result: RunResult | RunResultStreaming, run: SteeredRun) -> bool:
    """Return True if the run was cancelled after a turn: the tools are done, and no answer followed."""
    streamed = isinstance(result, RunResultStreaming)
    return streamed and result.final_output is None and run.call is not None and bool(run.call.waits_for)


@contextmanager
def _calls_of_its_own() -> Iterator[None]:
    """Hide the calls that are decided inside from the code outside."""
    before = CALL.set(CALL.get())
    try:
        yield
    finally:
        CALL.reset(before)
