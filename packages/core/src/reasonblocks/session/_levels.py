"""Reads an agent's own level when a run starts, and adds the run to the agent's profile when it has finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from ..concurrency.workers import Workers
from ..engine.own_level import AgentProfile, Summary, own_level, summary_of
from ..exceptions import Unavailable
from ..monitors.builtin import Calibration
from ..types import OwnLevel, RunInfo, TraceState
from ..util.text import bounded, digest
from ._bounded_call import BoundedCall
from .guard import Faults

NAME_BYTES = 200
"""The limit of an org and of an agent's name in a profile; a longer one ends in its hash."""
SHARE_OF_START = 2
"""Reading may take half of the first step's time, so that the standing rules have the rest."""


Agent: TypeAlias = tuple[str, str, str]
"""The key of a profile: org, agent name, task profile."""


REPLAYED = "replay"
"""The framework of a recorded run that is replayed: it is no new run of its agent."""


@runtime_checkable
class Profiles(Protocol):
    """Holds the summaries of the newest finished runs of each agent, and nothing of their texts.

    A call may block, unless `inline` is True. Raises `Unavailable` for a file that cannot be used. `keeps_replayed` is
    True if recorded runs are added, too.
    """

    @property
    def inline(self) -> bool: ...
    @property
    def keeps_replayed(self) -> bool: ...
    def read(self, agent: Agent, but: str) -> tuple[Summary, ...]:
        """Return the agent's summaries, the newest last, without that of the run `but`."""
        ...

    def add(self, agent: Agent, run: str, summary: Summary) -> None:
        """Add a run, or replace the summary that the agent has of it."""
        ...


@dataclass(frozen=True, slots=True)
class _Bounded:
    """Wait for `work`, with a deadline; an event loop runs it in a thread."""

    bounded: BoundedCall
    work: Callable[[], Any]
    seconds: float

    def answer(self) -> Any:
        return self.bounded.call(self.work, self.seconds)

    async def aanswer(self) -> Any:
        return await self.bounded.acall(self.work, self.seconds)


class Levels:
    """The own levels of a client's agents, in a store, against a calibration. A fault is logged once a client."""

    def __init__(self, profiles: Profiles, calibration: Calibration, workers: Workers, faults: Faults) -> None:
        self._profiles, self._calibration, self._faults = profiles, calibration, faults
        self._bounded = BoundedCall("the profile", workers)

    def read(self, run: RunInfo, ends: float) -> Generator[_Bounded, Any, OwnLevel | None]:
        """Return the level of a run that starts, None without enough runs, or if the store does not answer."""
        left = (ends - time.monotonic()) / SHARE_OF_START
        own: OwnLevel | None = yield from self._asked(partial(self._level, run), left)
        return own

    def add(self, run: RunInfo, state: TraceState, ends: float) -> Generator[_Bounded, Any, None]:
        """Add a finished run, if a monitor has judged it."""
        is_new = run.framework != REPLAYED or self._profiles.keeps_replayed
        if is_new and (summary := summary_of(state)):
            work = partial(self._profiles.add, agent_of(run), digest(run.run_id), summary)
            yield from self._asked(work, ends - time.monotonic())

    def _level(self, run: RunInfo) -> OwnLevel | None:
        runs = self._profiles.read(agent_of(run), digest(run.run_id))
        return own_level(self._calibration, AgentProfile(runs=runs))

    def _asked(self, work: Callable[[], Any], seconds: float) -> Generator[_Bounded, Any, Any]:
        with self._faults.guard("the profile"):
            try:
                return work() if self._profiles.inline else (yield _Bounded(self._bounded, work, seconds))
            except Unavailable as exc:
                self._faults.say("the profile", f"{exc}; no own level is used (logged once per client)")
        return None


def agent_of(run: RunInfo) -> Agent:
    """Return the key of the profile that a run belongs to."""
    return bounded(run.org_id, NAME_BYTES), bounded(run.agent_name, NAME_BYTES), run.task_profile
