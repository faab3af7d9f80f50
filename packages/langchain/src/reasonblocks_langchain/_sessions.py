"""Finds the run that a channel speaks of, or makes its session from what the caller and the channel say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from reasonblocks._session import SteeringSession
from reasonblocks.types import JSON

from ._channel import About, Carried
from ._models import route_names
from ._runs import Run, ScopedRuns

if TYPE_CHECKING:
    from reasonblocks._client import ReasonBlocks
    from reasonblocks.adapters import RunOptions


class Sessions:
    """The sessions of one middleware. On async paths a thread makes them: it may be the first to load something."""

    def __init__(self, rb: ReasonBlocks, options: RunOptions, runs: ScopedRuns) -> None:
        self._rb = rb
        self._options = replace(options, task=None)  # the channel has the task: a resumed run keeps its own
        self._runs = runs
        self._route_names = route_names(rb.model_routing)

    def opened(self, run_id: str, about: About, snapshot: Mapping[str, JSON] | None = None) -> SteeringSession:
        return self._options.session(
            self._rb,
            framework="langchain",
            run_id=run_id,
            agent_name=about.get("agent_name"),
            task=about["task"],
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
