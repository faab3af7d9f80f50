"""What a caller says once of all runs that an adapter steers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..types import JSON, AdapterCaps, Placement
from ._find import refuse_foreign

if TYPE_CHECKING:
    from .._client import ReasonBlocks
    from .._session import SteeringSession


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that every adapter's function takes, as given. What is None, the adapter or the client finds."""

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

    def check(self, rb: ReasonBlocks, snapshot: Mapping[str, Any] | None = None) -> None:
        """Refuse them where they are given, with the snapshot that the caller gave beside them.

        Raises `ConfigError`, and `ForeignDistribution` as `refuse_foreign`.
        """
        refuse_foreign()
        rb.check_run(snapshot, **{field.name: getattr(self, field.name) for field in fields(self)})

    def session(
        self,
        rb: ReasonBlocks,
        *,
        framework: str,
        run_id: str | None = None,
        agent_name: str | None = None,
        task: str | None = None,
        model: str | None = None,
        caps: AdapterCaps | None = None,
        snapshot: Mapping[str, Any] | None = None,
        parent_run_id: str | None = None,
        parent_call_id: str | None = None,
        session_id: str | None = None,
        route_names: Mapping[str, str] | None = None,
        placement: Placement | None = None,
    ) -> SteeringSession:
        """The session of one run, of which the adapter tells what it found.

        The caller's `agent_name`, `task` and `model` win over what was found; `run_id` and `placement` given here win
        over the caller's, since the adapter has numbered the one and narrowed the other; a run that goes on from a
        `snapshot` keeps its id. The rest, and what may be raised, is that of `ReasonBlocks.session`.
        """
        return rb.session(
            run_id=None if snapshot is not None else run_id or self.run_id,
            agent_name=self.agent_name or agent_name,
            task=self.task or task,
            model=self.model or model,
            codebase_id=self.codebase_id,
            org_id=self.org_id,
            project_id=self.project_id,
            task_profile=self.task_profile,
            metadata=self.metadata,
            placement=placement or self.placement,
            framework=framework,
            caps=caps,
            snapshot=snapshot,
            parent_run_id=parent_run_id,
            parent_call_id=parent_call_id,
            session_id=session_id,
            route_names=route_names,
        )
