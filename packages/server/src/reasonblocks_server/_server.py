"""Holds the parts of a running server, for its routes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from ._auth import Auth
from ._counting import Counting
from ._evaluations import NoteTakers, OrgEvaluations
from ._live import Live
from ._patterns import Patterns
from ._settings import Settings
from ._storage import Storage
from ._values import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The parts of a worker. All are safe to use from any thread.

    `pool` runs evaluations of many steps and searches for patterns, apart from the threads that wait for the database.
    """

    settings: Settings
    storage: Storage
    auth: Auth
    evaluations: OrgEvaluations
    takers: NoteTakers
    patterns: Patterns
    live: Live
    counting: Counting
    pool: ThreadPoolExecutor
    ending: Callable[[], None]
    """Ends what the start has left running."""

    def audit(self, caller: Principal, action: str, target: str) -> None:
        """Record a change that a caller made. Raises `StorageUnavailable`."""
        self.storage.audit.add(caller.org_id, caller.key_id, action, target, time.time())


async def _of(connection: HTTPConnection) -> Server:
    server: Server = connection.app.state.server
    return server


Used = Annotated[Server, Depends(_of)]
"""The server, as a parameter of a route."""
