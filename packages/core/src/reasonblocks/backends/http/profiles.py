"""Keeps agents' profiles on a server, where all processes of a team share them."""

from __future__ import annotations

from typing import Protocol, TypeAlias
from urllib.parse import urlencode

from ...exceptions import BadAnswer, Unavailable
from ...monitors.profile import MAX_RUNS, Summary, summary_in
from ...types import JSON
from ...util.json import compact
from ._connections import Ask, Reply
from ._exchange import Exchange
from .evaluator import JSON_BODY

BACKEND = "the profile"
PATH = "/monitor/agents/profile"
NOT_SERVED = (404, 405, 501)
"""Statuses of a server without the route."""


Agent: TypeAlias = tuple[str, str, str]
"""The key of a profile: org, agent name, task profile."""


class Local(Protocol):
    """Profiles of this process."""

    def read(self, agent: Agent, but: str) -> tuple[Summary, ...]: ...
    def add(self, agent: Agent, run: str, summary: Summary) -> None: ...


class HttpProfiles:
    """The profiles of a server's org. Each method takes at most `seconds`, and raises `Unavailable` or `BadAnswer`.

    `local` keeps those that a server cannot: of runs without an agent's name, because any number of programs would
    share their profile; of another org than `org_id`, because the server has one org for each key; and of all agents
    if the server does not serve profiles.
    """

    inline = False
    keeps_replayed = False

    def __init__(self, exchange: Exchange, org_id: str, seconds: float, local: Local) -> None:
        self._exchange, self._org_id, self._seconds, self._local = exchange, org_id, seconds, local
        self._is_served = True

    def read(self, agent: Agent, but: str) -> tuple[Summary, ...]:
        """Return the agent's summaries, the newest last, without that of the run `but`."""
        if self._shares(agent):
            query = urlencode({"agent_name": agent[1], "task_profile": agent[2], "but": but})
            reply = self._asked(Ask(path=f"{PATH}?{query}"))
            if reply is not None:
                return summaries_in(reply, self._exchange.address.shown)
        return self._local.read(agent, but)

    def add(self, agent: Agent, run: str, summary: Summary) -> None:
        """Add a run, or replace its summary."""
        if self._shares(agent):
            body: dict[str, JSON] = {
                "agent_name": agent[1],
                "task_profile": agent[2],
                "run_id": run,
                "summary": dict(summary),
            }
            if self._asked(Ask(path=PATH, body=compact(body).encode(), headers=JSON_BODY)) is not None:
                return
        self._local.add(agent, run, summary)

    def _shares(self, agent: Agent) -> bool:
        return self._is_served and agent[0] == self._org_id and bool(agent[1])

    def _asked(self, ask: Ask) -> Reply | None:
        """Return the server's answer, None if it does not serve profiles.

        A failure is none of the breaker's, because evaluations go on without a profile.
        """
        self._exchange.check(BACKEND)
        reply = self._exchange.send(ask, self._seconds)
        if reply.status in NOT_SERVED:
            self._is_served = False
            return None
        if not reply.is_success:
            raise Unavailable(BACKEND, self._exchange.reason(reply))
        return reply


def summaries_in(reply: Reply, server: str) -> tuple[Summary, ...]:
    """Return the summaries in an answer; damaged ones are skipped. Raises `BadAnswer`."""
    given = reply.json(server).get("summaries")
    if not isinstance(given, list) or len(given) > MAX_RUNS:
        raise BadAnswer(server, type(given).__name__, f"its summaries must be a list of at most {MAX_RUNS}")
    found = [summary_in(one) for one in given]
    return tuple([summary for summary in found if summary is not None])
