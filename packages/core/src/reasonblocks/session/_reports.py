"""Records what an adapter reports besides steps: its own faults, and routes or placements that are not available."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..types import Placement, RunInfo, Settings, evolve
from ._guard import Faults, not_built
from ._log import StepLog

if TYPE_CHECKING:
    from typing_extensions import Self


class Reports:
    """The part of a session that an adapter uses between steps."""

    _faults: Faults
    _log: StepLog
    _settings: Settings
    run: RunInfo

    @property
    def faults(self) -> dict[str, int]:
        """Faults of steering in this run, by kind."""
        return dict(self._faults.counts)

    def guard(self, kind: str) -> AbstractContextManager[None]:
        """Guard an adapter's own code: an exception is logged once per kind and run, and is not propagated."""
        return self._faults.guard(kind)

    def routing(self, state: str) -> AbstractContextManager[None]:
        """Guard the building of a mapped model: a failure is logged once and closes the route."""
        return self._faults.diverted(lambda exc: self.route_failed(state, exc))

    def route_failed(self, state: str, exc: Exception) -> None:
        """Close the route of a mapped model that cannot be built; the run goes on, steered, with the agent's model."""
        routes = {name: model for name, model in self._settings.routes.items() if name != state}
        self._faults.say(f"route {state}", not_built(state, exc), exc)
        self._settings = evolve(self._settings, routes=routes)
        self._log.route_failed(state)

    def no_tail(self, why: str) -> None:
        """Put guidance into the system message from the next step on, and log `why` once a run.

        For a run that turns out to have no tail. Any other placement is unchanged.
        """
        if self._settings.placement == "tail":
            self._settings = evolve(self._settings, placement="system")
            self._say_placement(why)

    def placed(self, asked: Placement) -> Self:
        """Return the session; log if its placement is not the one `asked` for and the framework has a choice."""
        if self._settings.placement not in (asked, "context"):
            self._say_placement(f"this run of {self.run.framework!r} has no placement {asked!r}")
        return self

    def _say_placement(self, why: str) -> None:
        if not self._settings.disabled:
            where = self._settings.placement
            self._faults.say("placement", f"{why}: guidance goes to {where!r}; set placement={where!r} to request that")
