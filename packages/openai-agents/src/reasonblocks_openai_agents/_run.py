"""Steered counterparts of the SDK's `Runner` methods: begin each run, and follow it to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents import Agent, AgentsException, RunConfig, Runner, RunResult, RunResultStreaming, RunState
from agents.lifecycle import RunHooksBase
from agents.run import DEFAULT_MAX_TURNS

from reasonblocks.adapters import RoutedModels, RunOptions, SteeringFlow, adrive, drive
from reasonblocks.messages.openai import Item

from ._config import CAPS, SERVER_MANAGED, Steering, new_run, own_model
from ._convert import task_of
from ._hooks import HooksOfRun
from ._model import as_model
from ._steered import CALL, SteeredRun
from ._stream import Stream

if TYPE_CHECKING:
    from reasonblocks import ReasonBlocks

MARK = "_reasonblocks_run"
"""The attribute that holds our run, of the SDK's results and of the errors that a run raised."""
SERVER_KEEPS = ("conversation_id", "previous_response_id", "auto_previous_response_id")
"""Arguments of `Runner.run`, also kept in a `RunState`, with which the server stores the conversation."""

AgentInput = str | list[Item] | RunState[Any, Any]
Result = RunResult | RunResultStreaming


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
                if (state := await adrive(self.second_look(result))) is not None:
                    result = await Runner.run(self.agent, state, **self._given_again)
            except BaseException as exc:
                await adrive(self.raised(exc))
                raise
            await adrive(self.returned(result))
        return result

    def to_its_end_sync(self) -> RunResult:
        try:
            result = Runner.run_sync(self.agent, self.asked, **self.given)
            if (state := drive(self.second_look(result))) is not None:
                result = Runner.run_sync(self.agent, state, **self._given_again)
        except BaseException as exc:
            drive(self.raised(exc))
            raise
        drive(self.returned(result))
        return result

    def streamed(self) -> RunResultStreaming:
        return Stream(self).result

    def stream(self, state: RunState[Any, Any] | None = None) -> RunResultStreaming:
        """Begin to stream the run, or its second look from this state."""
        if state is None:
            return Runner.run_streamed(self.agent, self.asked, **self.given)
        return Runner.run_streamed(self.agent, state, **self._given_again)

    def second_look(self, result: Result) -> SteeringFlow[RunState[Any, Any] | None]:
        """Return the state from which the run goes on after its end; None if it is over.

        Without a turn left it would fail, although it has an answer.
        """
        turns: int | None = result.max_turns
        if result.interruptions or _cancelled(result) or (turns is not None and len(result.raw_responses) >= turns):
            return None
        if not (yield from self.run.looks_again(_items_of(result))):
            return None
        with self.run.session.guard("continuing a run"):
            state = result.to_state()
            state._current_turn_persisted_item_count = 0  # 0.18 would not store a tool call of the turn to come
            return None if _cancelled(result) else state  # perhaps while the answer was judged
        return None

    @property
    def _given_again(self) -> dict[str, Any]:
        """The arguments for the rest of the run; its state has the context, with the usage so far."""
        return {name: value for name, value in self.given.items() if name != "context"}

    def raised(self, error: BaseException) -> SteeringFlow[None]:
        self.marks(error)
        return self.run.fails(error)

    def returned(self, result: Result) -> SteeringFlow[None]:
        self.marks(result)
        if result.interruptions or _stopped(result, self.run):
            self.run.pause()
        else:
            yield from self.run.ends(_items_of(result))

    def marks(self, where: object) -> None:
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
    run = new_run(
        rb,
        options,
        agent_name=first.name,
        task=task_of(asked if not isinstance(asked, RunState) else getattr(state, "_original_input", "")),
        model=own_model(first, config),
        caps=SERVER_MANAGED if kept else CAPS,
        snapshot=snapshot,
        session_id=_session_id(given),
    )
    most = given.get("max_turns", DEFAULT_MAX_TURNS) if state is None else getattr(state, "_max_turns", None)
    if isinstance(most, int):  # the SDK raises for a wrong one
        run.most_calls = run.calls + most - getattr(state, "_current_turn", 0)
    return run


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


def _items_of(result: Result) -> list[Item]:
    return [item.raw_item for item in result.new_items]


def _cancelled(result: Result) -> bool:
    """Return True if the caller has asked a stream to end."""
    return getattr(result, "_cancel_mode", "none") != "none"


def _stopped(result: Result, run: SteeredRun) -> bool:
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
