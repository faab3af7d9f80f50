"""Learns an agent's patience when a run starts, and adds the run to the agent's profile when it has finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from ..concurrency.workers import Workers
from ..exceptions import Unavailable
from ..monitors.profile import Summary, explores, patience_of, summary_of
from ..types import Patience, RunInfo, TraceState
from ..util.text import cut_with_hash, digest
from .bounded_call import BoundedCall
from .drive import Call, SteeringFlow
from .guard import Faults

PROFILE = "the profile"
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


class Learned:
    """The patience of a client's agents, learned from their profiles. A fault is logged once a client."""

    def __init__(self, profiles: Profiles, workers: Workers, faults: Faults) -> None:
        self._profiles, self._faults = profiles, faults
        self._bounded = BoundedCall(PROFILE, workers)

    def read(self, run: RunInfo, explore: float, ends: float) -> SteeringFlow[Patience | None]:
        """Return the patience of a run that starts; None for a run without an agent's name, or without an answer."""
        if not run.agent_name:
            return None
        left = (ends - time.monotonic()) / SHARE_OF_START
        own: Patience | None = yield from self._asked(partial(self._patience, run, explore), left)
        if own is not None and not own.rung and not explores(own):
            self._faults.say(
                f"silent {agent_of(run)}",
                f"agent {run.agent_name!r} gets out of its dead steps by itself at every rung: its monitors are silent",
            )
        return own

    def add(self, run: RunInfo, state: TraceState, ends: float) -> SteeringFlow[None]:
        """Add a finished run of an agent with a name, if a step was judged."""
        if not run.agent_name:
            return
        is_new = run.framework != REPLAYED or self._profiles.keeps_replayed
        if is_new and (summary := summary_of(state)):
            work = partial(self._profiles.add, agent_of(run), digest(run.run_id), summary)
            yield from self._asked(work, ends - time.monotonic())

    def _patience(self, run: RunInfo, explore: float) -> Patience:
        return patience_of(self._profiles.read(agent_of(run), digest(run.run_id)), run.run_id, explore)

    def _asked(self, work: Callable[[], Any], seconds: float) -> SteeringFlow[Any]:
        bounded_call = None if self._profiles.inline else self._bounded
        with self._faults.guard(PROFILE):
            try:
                return (yield Call(name=PROFILE, work=work, bounded=bounded_call, seconds=seconds))
            except Unavailable as exc:
                self._faults.say(PROFILE, f"{exc}; the default patience is used (logged once per client)")
        return None


def agent_of(run: RunInfo) -> Agent:
    """Return the key of the profile that a run belongs to."""
    return cut_with_hash(run.org_id, NAME_BYTES), cut_with_hash(run.agent_name, NAME_BYTES), run.task_profile
