"""The private channel that carries a run in its agent's own state: plain JSON, so that a checkpoint keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from typing_extensions import NotRequired

from reasonblocks.types import JSON

CHANNEL = "reasonblocks"


class About(TypedDict):
    """What is known of one run alone; the rest of its `RunInfo` comes from the middleware."""

    task: str
    session_id: str | None
    parent_run_id: str | None
    parent_call_id: str | None
    agent_name: NotRequired[str | None]
    """The name passed to `create_agent(name=...)`. A checkpoint of an older version has none."""


class Carried(TypedDict):
    """What any process needs to go on with a run."""

    run_id: str
    snapshot: dict[str, JSON]
    about: About
    model: str
    """The name of the agent's own model; empty until a call, or the caller, said it."""
    before_run: str | None
    """The id of the newest answer that earlier runs of the thread left."""
    seen: str | None
    """The id of the answer that this run's last call gave."""
    key: str | None
    """The key of the last decision."""


def merged(old: Mapping[str, Carried], new: Mapping[str, Carried]) -> dict[str, Carried]:
    """Two middlewares of one agent each keep their own part, by their names."""
    return {**old, **new}


class SteeringState(AgentState[Any]):
    """An agent's state with our channel, which neither comes in with the input nor goes out with the output."""

    reasonblocks: NotRequired[Annotated[dict[str, Carried], PrivateStateAttr, merged]]
