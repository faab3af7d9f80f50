"""Defines the values that pass between the routes and the storage.

Times are seconds since the epoch by the server's clock, unless a field says that a client wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from reasonblocks.events import StepEvent

Scope: TypeAlias = Literal["ingest", "evaluate", "read", "steer", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
NoteState: TypeAlias = Literal["queued", "told", "withdrawn", "expired", "unheard"]
Body: TypeAlias = "dict[str, Any]"
"""A JSON object."""


MAX_RETENTION_DAYS = 3_650
"""The longest time for which an org may keep its runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of a request: the key's org, its project if it has one, its scopes, and when it expires, if ever."""

    org_id: str
    key_id: str
    scopes: frozenset[Scope]
    project_id: str | None = None
    expires: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A key without its secret. The times are None for never.

    `refused` is the time of the last refused request: the key had expired or was revoked, or the secret was wrong.
    """

    key_id: str
    org_id: str
    name: str
    scopes: tuple[Scope, ...]
    created: float
    project_id: str | None = None
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None
    refused: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """The result of a batch of events.

    `refused` has the index and the reason for each refused event. `steps` are the accepted steps, `finished` the ids of
    runs that ended with this batch for the first time, `unsummarised` those that still need `Runs.summarise`.
    """

    accepted: int = 0
    repeated: int = 0
    refused: tuple[tuple[int, str], ...] = ()
    steps: tuple[StepEvent, ...] = ()
    finished: tuple[str, ...] = ()
    unsummarised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run. `started` is the time of its first event by its client, five minutes after its arrival at
    most; `seen` is the server's of its newest event.

    `state` is that of the newest step, `failure_type` the newest one. `tokens` and `cost_usd` are None if no step has
    any. `summary` is that of `_summary.summary_of`, None for a run that has not finished, or is long and not summarised
    yet. `body` is the `run_start` event, empty for a run without one.
    """

    org_id: str
    run_id: str
    started: float
    seen: float
    finished: float | None = None
    outcome: str | None = None
    agent_name: str = ""
    task: str = ""
    model: str = ""
    framework: str = ""
    project_id: str = "default"
    mode: str = "steer"
    parent_run_id: str | None = None
    experiment_id: str | None = None
    arm: str | None = None
    unit_id: str | None = None
    steps: int = 0
    state: str | None = None
    failure_type: str | None = None
    injections: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    takes_notes: bool = False
    summary: Body | None = None
    body: Body = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """A step without its texts: the columns of its event, for lists and counts."""

    run_id: str
    step_index: int
    at: float
    fsm_state: str = ""
    difficulty: float | None = None
    composite: float | None = None
    failure_type: str | None = None
    gate: str = ""
    skipped: str = ""
    model: str | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    fired: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """The sources of the texts that the agent was told."""
    withheld: tuple[str, ...] = ()
    """The sources of the texts that were recorded and not shown."""
    final: bool = False
    error: bool = False
    """True if the call failed."""
    stopped: bool = False
    """True if the run was stopped before this call, or would have been without mode "observe"."""
    dropped: int = 0
    """The number of texts that did not fit."""
    doubts: bool = False
    """True if monitors doubt that the run ended well. Only the last step's value counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """A filter for lists of runs. An empty field matches all runs.

    `state` and `failure_type` are those of `RunRow`. `outcome` is "success", "failure", "stopped", "unknown" or "live".
    `q` is a part of the task, the agent's name or the run's id, in any case. `since` is a time of `started`.
    """

    agent: str = ""
    state: str = ""
    outcome: str = ""
    failure_type: str = ""
    experiment_id: str = ""
    arm: str = ""
    q: str = ""
    since: float | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """An operator's note. `told_step` is the call that contained it, `project_id` the project of its run."""

    note_id: str
    org_id: str
    run_id: str
    text: str
    key_id: str
    state: NoteState
    created: float
    expires: float
    told_step: int | None = None
    project_id: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """A task profile of an org: the monitors' weights."""

    name: str
    weights: Mapping[str, float]
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """A change, with the key that made it."""

    id: int
    at: float
    key_id: str
    action: str
    target: str
