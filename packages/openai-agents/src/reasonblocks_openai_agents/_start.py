"""Makes the session of one run of the SDK from what the caller says and what the run shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents import Agent, Model, RunConfig
from agents.models import get_default_model

from reasonblocks._routing import model_name
from reasonblocks.adapters import RunOptions
from reasonblocks.exceptions import ConfigError, SnapshotError
from reasonblocks.types import AdapterCaps

from ._calls import calling_run
from ._steered import SteeredRun

if TYPE_CHECKING:
    from reasonblocks._client import ReasonBlocks

FRAMEWORK = "openai-agents"
CAPS = AdapterCaps()
SERVER_MANAGED = AdapterCaps(placements=frozenset({"system"}))
"""Of a conversation that the server keeps: a message at its end would be stored."""
ONLY_RECORDED = AdapterCaps(routing="none", max_guidance_chars=0)


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
        server_managed=caps is SERVER_MANAGED,
        resumed=snapshot is not None,
        waits_for=[str(one) for one in _list_in(snapshot, "waits_for")],
    )
    for child in _list_in(snapshot, "children"):
        run.adopt(_gone_on(rb, options, child, run))
    return run


def within(options: RunOptions) -> RunOptions:
    """Those of an agent that a tool calls: its name, its task and its model are its own."""
    return replace(options, run_id=None, agent_name=None, task=None, model=None, placement=None)


def _gone_on(rb: ReasonBlocks, options: RunOptions, kept: object, parent: SteeredRun) -> SteeredRun:
    if not isinstance(kept, Mapping):
        raise SnapshotError("children", kept, "must be JSON objects")
    return new_run(
        rb,
        within(options),
        agent_name=str(kept.get("agent_name") or ""),
        task=str(kept.get("task") or ""),
        model=str(kept.get("model") or ""),
        caps=SERVER_MANAGED,
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
    """The name of the model that this agent calls by itself."""
    wanted = (config.model if config else None) or agent.model
    if isinstance(wanted, Model):
        return model_name(wanted)
    return wanted or get_default_model()
