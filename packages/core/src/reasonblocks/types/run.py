"""A run's options, as a user gives them, and its description, as events record it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar

from ..util.json import JSON
from .steering import AdapterCaps, Budget, Mode, Placement

if TYPE_CHECKING:
    from typing_extensions import Unpack

SessionT = TypeVar("SessionT", covariant=True)


class RunFields(TypedDict, total=False):
    """The fields of `RunOptions` but `mode` as keywords, for a signature with another `mode`."""

    run_id: str | None
    agent_name: str | None
    task: str | None
    model: str | None
    codebase_id: str | None
    org_id: str | None
    project_id: str | None
    task_profile: str | None
    metadata: Mapping[str, JSON] | None
    placement: Placement | None
    traceparent: str | None
    experiment_id: str | None
    unit_id: str | None
    on_fraction: float | None
    budget: Budget | Literal["auto"] | None


class RunKeywords(RunFields, total=False):
    """The fields of `RunOptions` as keywords, for the signatures of functions."""

    mode: Mode | None


class SessionKeywords(TypedDict, total=False):
    """An adapter's own knowledge of a run, as `ReasonBlocks.session` takes it."""

    caps: AdapterCaps | None
    parent_run_id: str | None
    parent_call_id: str | None
    session_id: str | None
    route_names: Mapping[str, str] | None
    interrupt_when: Literal["stalled", "over_budget"] | Callable[[Any], str | None] | None


class Client(Protocol[SessionT]):
    """The methods of `ReasonBlocks` that read `RunOptions`."""

    def check_run(
        self,
        options: RunOptions,
        snapshot: Mapping[str, Any] | None = None,
        interrupt_when: object = None,
    ) -> None: ...
    def session(
        self,
        options: RunOptions | None = None,
        *,
        framework: str = ...,
        snapshot: Mapping[str, Any] | None = None,
        **found: Unpack[SessionKeywords],
    ) -> SessionT: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, as its user gives them. The adapter or the client fills in a field that is None.

    `traceparent` is the W3C header of the span that the run belongs to, "00-TRACE-SPAN-FLAGS"; None for the current
    span of a program that uses OpenTelemetry.

    A run with an `experiment_id` is steered or only observed, by the hash of that id and of `unit_id`, such as a user
    or a repository, by default the run's own id. `on_fraction` is the share of units that are steered, 0.5 by default;
    keep it for the whole experiment. Runs that this run starts are in its arm. An experiment chooses the mode of its
    runs, so that `mode` beside it is an error; a client that observes all runs observes these, too, without an arm.
    """

    run_id: str | None = None
    agent_name: str | None = None
    task: str | None = None
    model: str | None = None
    codebase_id: str | None = None
    org_id: str | None = None
    project_id: str | None = None
    task_profile: str | None = None
    metadata: Mapping[str, JSON] | None = None
    placement: Placement | None = None
    mode: Mode | None = None
    traceparent: str | None = None
    experiment_id: str | None = None
    unit_id: str | None = None
    on_fraction: float | None = None
    budget: Budget | Literal["auto"] | None = None

    def check(
        self,
        rb: Client[object],
        snapshot: Mapping[str, Any] | None = None,
        interrupt_when: object = None,
    ) -> None:
        """Validate the options, together with the snapshot and the `interrupt_when` that the user gave.

        Raises `ConfigError`.
        """
        rb.check_run(self, snapshot, interrupt_when)

    def session(
        self,
        rb: Client[SessionT],
        *,
        framework: str,
        run_id: str | None = None,
        agent_name: str | None = None,
        task: str | None = None,
        model: str | None = None,
        placement: Placement | None = None,
        snapshot: Mapping[str, Any] | None = None,
        **found: Unpack[SessionKeywords],
    ) -> SessionT:
        """Return the session of one run, for which the adapter passes what it found.

        The user's `agent_name`, `task` and `model` take precedence over those found. A `run_id` or `placement` given
        here takes precedence over the user's, because the adapter has numbered the id and narrowed the placement. A
        run that continues from a `snapshot` keeps its id. For the rest see `ReasonBlocks.session`.
        """
        options = replace(
            self,
            run_id=None if snapshot is not None else run_id or self.run_id,
            agent_name=self.agent_name or agent_name,
            task=self.task or task,
            model=self.model or model,
            placement=placement or self.placement,
        )
        return rb.session(options, framework=framework, snapshot=snapshot, **found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The description of one agent run, as `run_start` reports it."""

    run_id: str
    framework: str = "custom"
    agent_name: str = ""
    task: str = ""
    model: str = ""
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    session_id: str | None = None
    codebase_id: str | None = None
    org_id: str = "default"
    project_id: str = "default"
    task_profile: str = "coding"
    mode: Mode = "steer"
    traceparent: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)
