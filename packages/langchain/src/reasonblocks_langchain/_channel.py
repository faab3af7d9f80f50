"""The private channel that carries a run in its agent's own state, as plain JSON, and the keys of the run's calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, TypedDict

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langgraph.managed.is_last_step import RemainingStepsManager
from typing_extensions import NotRequired

from reasonblocks.adapters import digest
from reasonblocks.types import JSON, StepInput

CHANNEL = "reasonblocks"
STEPS_LEFT = "reasonblocks_steps_left"
START = "start"
"""The key of a run's first call."""
KEY_LENGTH = 64
AGAIN = " again at "


class About(TypedDict):
    """The part of a `RunInfo` that is one run's own; the rest comes from the middleware."""

    task: str
    session_id: str | None
    parent_run_id: str | None
    parent_call_id: str | None
    agent_name: NotRequired[str | None]
    """The name passed to `create_agent(name=...)`. A checkpoint of an older version has none."""


class Carried(TypedDict):
    """The state from which any process continues a run."""

    run_id: str
    snapshot: dict[str, JSON]
    about: About
    model: str
    """The name of the agent's own model; empty until a call, or the caller, has named it."""
    before_run: str | None
    """The id of the newest answer that earlier runs of the thread left."""
    seen: str | None
    """The id of the answer that this run's last call gave."""
    key: str | None
    """The key of the last decision."""
    supersteps: NotRequired[list[int]]
    """The supersteps of the last two decisions; the run's start counts as the first. An older checkpoint has none."""


def merged(old: Mapping[str, Carried], new: Mapping[str, Carried]) -> dict[str, Carried]:
    """Merge the parts of several middlewares of one agent, by their names."""
    return {**old, **new}


class SteeringState(AgentState[Any]):
    """An agent's state with our channel, which is part of neither the input nor the output."""

    reasonblocks: NotRequired[Annotated[dict[str, Carried], PrivateStateAttr, merged]]


class CountingState(SteeringState):
    """The state of an agent whose supersteps are counted: for a second look, or for `budget="auto"`."""

    reasonblocks_steps_left: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]
    """The supersteps up to the `recursion_limit`: LangGraph computes it for each node, and stores it nowhere."""


def step_key(answer: str | None, last: str | None) -> str:
    """Return the key of the call that follows an answer: the answer's id, bounded, or `last` if it was made of that."""
    name = START if answer is None else answer if len(answer) <= KEY_LENGTH else digest(answer)
    return last if last is not None and last.startswith(f"{name}{AGAIN}") else name


def with_new_id(given: StepInput, call: int) -> StepInput:
    """Return the input of a new step at call `call`, for an answer whose id was used before."""
    name, _, _ = (given.key or START).partition(AGAIN)
    return replace(given, key=f"{name}{AGAIN}{call}")
