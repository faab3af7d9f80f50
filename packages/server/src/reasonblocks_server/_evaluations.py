"""Evaluates steps with an org's own task profiles."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from cachetools import FIFOCache
from starlette.concurrency import run_in_threadpool

from reasonblocks.monitors.builtin import WEIGHTS
from reasonblocks.types import Note
from reasonblocks.wire import EvaluateRequest, EvaluateResponse

from ._shares import SharedPool
from .errors import ApiError, StorageUnavailable
from .serving import DEFAULT_PROFILE, Evaluations
from .storage import Storage
from .values import ProfileRow

logger = logging.getLogger("reasonblocks.server")

INLINE_STEPS = 4
"""The most steps that are evaluated on the event loop, which takes 3 ms."""
INLINE_BYTES = 64_000
"""Bytes of the largest body that is evaluated there. A body with thousands of tool calls takes 30 ms."""
PROFILES_S = 5.0
"""Seconds for which an org's profiles are cached."""
PROFILES_WAIT_S = 0.25
"""Seconds that an evaluation waits for the database. Then it uses the known profiles."""
RUNS = 10_000
"""The most runs for which a worker remembers that they take notes."""
ORGS = 1_000
"""Orgs whose profiles are cached."""


class OrgEvaluations:
    """The evaluations of a worker; those of many steps run in `pool`. For one event loop."""

    def __init__(self, storage: Storage, pool: SharedPool, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._evaluations, self._pool = Evaluations(), pool
        self.profiles = Profiles(storage, clock)

    async def answer(
        self,
        request: EvaluateRequest,
        *,
        org: str,
        notes: Sequence[Note] = (),
        ends: float | None = None,
        size: int = 0,
    ) -> EvaluateResponse:
        """Return the evaluation of a request's last step. Raises `ConfigError`, and `ApiError` 503 at `ends`.

        Few steps are evaluated on the event loop, and more in a thread; so are those of a body of a large `size`.
        """
        request = await self.profiles.applied(org, request)
        if len(request.steps) <= INLINE_STEPS and size <= INLINE_BYTES:
            return self._evaluations.answer(request, notes=notes)
        go_on = partial(_check, ends)
        in_thread = partial(self._evaluations.answer, request, notes=notes, go_on=go_on)
        return await self._pool.run(org, in_thread)


def _check(ends: float | None) -> None:
    if ends is not None and time.monotonic() >= ends:
        raise ApiError(503, "the evaluation did not end within the client's deadline", {"Retry-After": "1"})


@dataclass(slots=True, kw_only=True)
class _OfOrg:
    profiles: Mapping[str, ProfileRow]
    read: float


class Profiles:
    """The profiles of orgs, cached for some seconds."""

    def __init__(self, storage: Storage, clock: Callable[[], float]) -> None:
        self._storage, self._clock = storage, clock
        self._orgs: FIFOCache[str, _OfOrg] = FIFOCache(ORGS)
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._unknown: FIFOCache[str, None] = FIFOCache(ORGS)

    async def applied(self, org: str, request: EvaluateRequest) -> EvaluateRequest:
        """Return the request with the settings of the org's profile in place of missing ones."""
        profile = (await self._of(org)).get(request.task_profile)
        if profile is None:
            if request.task_profile not in WEIGHTS:
                self._note_unknown(org, request.task_profile)
            return request
        if request.weights is not None or not profile.weights:
            return request
        return request.model_copy(update={"weights": dict(profile.weights)})

    async def _of(self, org: str) -> Mapping[str, ProfileRow]:
        known = self._orgs.get(org)
        if known is None or self._clock() - known.read > PROFILES_S:
            reading = self._reading.get(org)
            if reading is None:
                reading = self._reading[org] = asyncio.create_task(self._read(org))
            await asyncio.wait([reading], timeout=PROFILES_WAIT_S)
            known = self._orgs.get(org)
        return {} if known is None else known.profiles

    async def _read(self, org: str) -> None:
        now = self._clock()
        try:
            rows = await run_in_threadpool(self._storage.profiles.list, org)
            profiles: Mapping[str, ProfileRow] = {row.name: row for row in rows}
        except StorageUnavailable:
            known = self._orgs.get(org)
            profiles = {} if known is None else known.profiles
        finally:
            del self._reading[org]
        self._orgs[org] = _OfOrg(profiles=profiles, read=now)

    async def close(self) -> None:
        """Wait for the database reads in progress."""
        for reading in list(self._reading.values()):
            with suppress(Exception):
                await reading

    def _note_unknown(self, org: str, name: str) -> None:
        key = f"{org}\n{name[:100]}"
        if key not in self._unknown:
            self._unknown[key] = None
            text = "task profile %r of org %r is neither built in nor stored: its steps are evaluated as %r"
            logger.warning(text, name[:100], org, DEFAULT_PROFILE)


class NoteTakers:
    """Records which runs take operators' notes, once for each run and worker, in a thread."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._pool = storage, ThreadPoolExecutor(1, "reasonblocks-takers")
        self._lock = threading.Lock()
        self._known: FIFOCache[tuple[str, str, str | None], None] = FIFOCache(RUNS)

    def note(self, org_id: str, run_id: str, project_id: str | None = None) -> None:
        """Record in a thread that a run takes notes, unless that is known. `project_id` is that of the key."""
        run = (org_id, run_id, project_id)
        with self._lock:
            if run in self._known:
                return
            self._known[run] = None
        self._pool.submit(self._store, run)

    def settle(self, seconds: float) -> None:
        """Wait until all runs are recorded. Raises `TimeoutError` if that takes longer."""
        self._pool.submit(int).result(seconds)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _store(self, run: tuple[str, str, str | None]) -> None:
        org_id, run_id, project_id = run
        try:
            self._storage.runs.takes_notes(org_id, run_id, time.time(), project_id)
        except StorageUnavailable:
            with self._lock:  # the run's next evaluation tries again
                self._known.pop(run, None)
