"""Finds the run that a channel speaks of, or makes its session from what the caller and the channel say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reasonblocks.session import SteeringSession
from reasonblocks.types import JSON, Placement

from ._channel import About, Carried
from ._models import route_names
from ._runs import Run, Runs

if TYPE_CHECKING:
    from reasonblocks.client import ReasonBlocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller of `rb.middleware` said of all its runs."""

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


class Sessions:
    """The sessions of one middleware. On async paths a thread makes them: it may be the first to load something."""

    def __init__(self, rb: ReasonBlocks, options: Options, runs: Runs) -> None:
        self._rb = rb
        self._options = options
        self._runs = runs
        self._route_names = route_names(rb.model_routing)

    def opened(self, run_id: str, about: About, snapshot: Mapping[str, JSON] | None = None) -> SteeringSession:
        options = self._options
        return self._rb.session(
            run_id=run_id,
            agent_name=options.agent_name,
            task=about["task"],
            model=options.model,
            codebase_id=options.codebase_id,
            org_id=options.org_id,
            project_id=options.project_id,
            task_profile=options.task_profile,
            metadata=options.metadata,
            placement=options.placement,
            framework="langchain",
            snapshot=snapshot,
            parent_run_id=about["parent_run_id"],
            parent_call_id=about["parent_call_id"],
            session_id=about["session_id"],
            route_names=self._route_names,
        )

    def run(self, carried: Carried) -> tuple[Run, SteeringSession]:
        """The run, and the session that stands where the channel stands."""
        return self._held(carried) or self._taken_over(carried, self._restored(carried))

    async def arun(self, carried: Carried) -> tuple[Run, SteeringSession]:
        return self._held(carried) or self._taken_over(carried, await asyncio.to_thread(self._restored, carried))

    def _held(self, carried: Carried) -> tuple[Run, SteeringSession] | None:
        run = self._runs.find(carried["run_id"])
        session = run.standing_at(carried["snapshot"]) if run else None
        if run is None or session is None:
            return None
        self._runs.taken_up(run)
        return run, session

    def _restored(self, carried: Carried) -> SteeringSession:
        return self.opened(carried["run_id"], carried["about"], carried["snapshot"])

    def _taken_over(self, carried: Carried, session: SteeringSession) -> tuple[Run, SteeringSession]:
        """The channel wins over what is held here: it comes from another process, or another branch of a thread."""
        run = self._runs.find(carried["run_id"])
        if run is None:
            run = self._runs.add(Run(session, carried["snapshot"]))
        else:
            run.go_on_from(session, carried["snapshot"])
            self._runs.taken_up(run)
        return run, session
