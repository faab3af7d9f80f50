"""Evaluates steps with an org's own profiles, and caches results for clients that send all steps each time."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool

from reasonblocks.monitors.builtin import WEIGHTS
from reasonblocks.types import Note
from reasonblocks.wire import EvaluateRequest, EvaluateResponse

from .errors import ApiError, StorageUnavailable
from .serving import DEFAULT_PROFILE, Evaluations, Seal
from .storage import Storage
from .values import ProfileRow

logger = logging.getLogger("reasonblocks.server")

INLINE_STEPS = 8
"""The most steps that are evaluated on the event loop, which takes 3 ms."""
INLINE_BYTES = 64_000
"""Bytes of the largest body that is evaluated there. A body with thousands of tool calls takes 30 ms."""
CHUNK = 64
"""Steps that are evaluated between checks of the client's deadline, and the most that are hashed on the event loop."""
ENTRIES, ENTRY_BYTES = 4_096, 16_000_000
"""The size of the cache of memories."""
OVERHEAD_BYTES = 600
"""The approximate bytes of an entry without its memories."""
PROFILES_S = 5.0
"""Seconds for which an org's profiles are cached."""
PROFILES_WAIT_S = 0.25
"""Seconds that an evaluation waits for the database. Then it uses the known profiles."""
RUNS = 10_000
"""The most runs for which a worker remembers that they take notes."""
ORGS = 1_000
"""Orgs whose profiles are cached."""


class Memories:
    """The memories of runs whose clients send all steps each time, by the digest of the steps. Thread-safe."""

    def __init__(self, entries: int = ENTRIES, size: int = ENTRY_BYTES) -> None:
        self._lock = threading.Lock()
        self._most, self._most_size = entries, size
        self._entries: OrderedDict[bytes, Mapping[str, Any]] = OrderedDict()
        self._size = 0

    def get(self, key: bytes) -> Mapping[str, Any] | None:
        with self._lock:
            if found := self._entries.get(key):
                self._entries.move_to_end(key)
            return found

    def put(self, key: bytes, sealed: Mapping[str, Any]) -> None:
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = sealed
            self._size += _size(sealed)
            while len(self._entries) > self._most or self._size > self._most_size:
                self._size -= _size(self._entries.popitem(last=False)[1])


def _size(sealed: Mapping[str, Any]) -> int:
    return OVERHEAD_BYTES + len(sealed["memories"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """A request whose first steps the cache may have. `keys` are the digests after each step, if it may be cached."""

    request: EvaluateRequest
    keys: Sequence[bytes] = ()

    def after(self, known: int, memory: Mapping[str, Any]) -> _Ask:
        """Return the request without its first `known` steps."""
        changes = {"steps": self.request.steps[known:], "from_step": known, "memory": memory}
        return _Ask(request=self.request.model_copy(update=changes), keys=self.keys)


class OrgEvaluations:
    """The evaluations of a worker; those of many steps run in `pool`. Thread-safe, for one event loop."""

    def __init__(
        self,
        secret: bytes,
        storage: Storage,
        pool: ThreadPoolExecutor,
        *,
        entries: int = ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._evaluations, self._pool = Evaluations(Seal(secret)), pool
        self._memories = Memories(entries=entries)
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
        if len(request.steps) <= CHUNK and size <= INLINE_BYTES:
            ask = self._known(org, request)
            if len(ask.request.steps) <= INLINE_STEPS:
                return self._answer(ask, org, notes)
        in_thread = partial(self._in_chunks, org, request, notes, ends)
        return await asyncio.get_running_loop().run_in_executor(self._pool, in_thread)

    def _in_chunks(
        self, org: str, request: EvaluateRequest, notes: Sequence[Note], ends: float | None
    ) -> EvaluateResponse:
        """Evaluate many steps. If the client gives up, its next request continues after the finished chunks."""
        _check(ends)
        ask = self._known(org, request)
        while ask.keys and len(ask.request.steps) > CHUNK:
            _check(ends)
            first = ask.request.model_copy(update={"steps": ask.request.steps[:CHUNK]})
            done = self._answer(_Ask(request=first, keys=ask.keys), org, ())
            ask = _rest(ask, done.memory)
        _check(ends)
        return self._answer(ask, org, notes)

    def _known(self, org: str, request: EvaluateRequest) -> _Ask:
        """Return the request without the steps that the cache has."""
        keys = _keys(org, request)
        ask = _Ask(request=request, keys=keys)
        for known in range(len(keys) - 1, 0, -1):  # the last step is evaluated in any case
            if memory := self._memories.get(keys[known - 1]):
                return ask.after(known, memory)
        return ask

    def _answer(self, ask: _Ask, org: str, notes: Sequence[Note]) -> EvaluateResponse:
        answer = self._evaluations.answer(ask.request, org=org, notes=notes)
        if ask.keys:
            self._memories.put(ask.keys[ask.request.from_step + len(ask.request.steps) - 1], answer.memory)
        return answer


def _rest(ask: _Ask, memory: Mapping[str, Any]) -> _Ask:
    start = ask.request.from_step + CHUNK
    changes = {"steps": ask.request.steps[CHUNK:], "from_step": start, "memory": memory}
    return _Ask(request=ask.request.model_copy(update=changes), keys=ask.keys)


def _check(ends: float | None) -> None:
    if ends is not None and time.monotonic() >= ends:
        raise ApiError(503, "the evaluation did not end within the client's deadline", {"Retry-After": "1"})


def sends_all(request: EvaluateRequest) -> bool:
    """Return True for a client that sends all steps each time and keeps no memory, as older clients do."""
    is_whole = request.memory is None and request.from_step == 0 and not request.observed
    return is_whole and (len(request.steps) > 1 or "injected" not in request.model_fields_set)


_OF_SETTINGS = {"task_profile", "weights", "task", "tool_roles", "calibration", "own_level", "run_id"}
"""The fields, other than the steps, on which the memories depend."""


def _keys(org: str, request: EvaluateRequest) -> list[bytes]:
    """Return the digest of the steps up to each one. Empty for a request that is not cached."""
    if not request.steps or not sends_all(request):
        return []
    try:
        settings = request.model_dump_json(include=_OF_SETTINGS)
        texts = [step.model_dump_json().encode() for step in request.steps]
    except ValueError:  # an unpaired surrogate, which UTF-8 cannot encode
        return []
    chain = hashlib.sha256(f"{len(org)}:{org}{settings}".encode("utf-8", "surrogatepass")).digest()
    keys = []
    for text in texts:
        chain = hashlib.sha256(chain + text).digest()
        keys.append(chain)
    return keys


@dataclass(slots=True, kw_only=True)
class _OfOrg:
    profiles: Mapping[str, ProfileRow]
    read: float


class Profiles:
    """The profiles of orgs, cached for some seconds."""

    def __init__(self, storage: Storage, clock: Callable[[], float]) -> None:
        self._storage, self._clock = storage, clock
        self._orgs: OrderedDict[str, _OfOrg] = OrderedDict()
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._unknown: OrderedDict[str, None] = OrderedDict()

    async def applied(self, org: str, request: EvaluateRequest) -> EvaluateRequest:
        """Return the request with the settings of the org's profile in place of missing ones."""
        profile = (await self._of(org)).get(request.task_profile)
        if profile is None:
            if request.task_profile not in WEIGHTS:
                self._note_unknown(org, request.task_profile)
            return request
        changes: dict[str, Any] = {}
        if request.weights is None and profile.weights:
            changes["weights"] = dict(profile.weights)
        if request.calibration is None and profile.calibration is not None:
            changes["calibration"] = profile.calibration
        return request.model_copy(update=changes) if changes else request

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
        self._orgs.move_to_end(org)
        while len(self._orgs) > ORGS:
            self._orgs.popitem(last=False)

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
            while len(self._unknown) > ORGS:
                self._unknown.popitem(last=False)


class NoteTakers:
    """Records which runs take operators' notes, once for each run and worker, in a thread."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._pool = storage, ThreadPoolExecutor(1, "reasonblocks-takers")
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str, str | None], None] = OrderedDict()

    def note(self, org_id: str, run_id: str, project_id: str | None = None) -> None:
        """Record in a thread that a run takes notes, unless that is known. `project_id` is that of the key."""
        run = (org_id, run_id, project_id)
        with self._lock:
            if run in self._known:
                return
            self._known[run] = None
            while len(self._known) > RUNS:
                self._known.popitem(last=False)
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
