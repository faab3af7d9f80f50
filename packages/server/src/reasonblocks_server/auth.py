"""Identifies the caller of a request by its key, checks its scopes, and limits its rate."""

from __future__ import annotations

import hashlib
import hmac
import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from cachetools import FIFOCache
from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ._shares import IN_PROGRESS, Places
from .errors import ApiError, StorageUnavailable
from .settings import Settings
from .storage import Storage
from .values import KeyRow, Principal, Scope

PREFIX = "rbk_"
STATIC_SCOPES: frozenset[Scope] = frozenset({"ingest", "evaluate", "read"})
DEFAULT_ORG = "default"
KNOWN_S = 30.0
"""Seconds for which a key is not looked up again: about the longest time for which a revoked key is accepted."""
REFRESH_S = 5.0
"""Seconds after that in which a cached key is accepted while a thread looks it up again."""
RETRY_S = 5.0
"""Seconds after which a database that did not answer is asked again."""
GRACE_S = 300.0
"""Seconds for which a known key is accepted while the database does not answer."""
MAX_KNOWN = 10_000
"""The most cached keys. Unknown keys have a cache of their own, so they displace no known one."""
MAX_KEY_CHARS = 512
LOOKUPS_PER_SECOND, LOOKUP_BURST = 50.0, 100
"""The rate of a worker's lookups of unknown keys, which limits the load by guessed keys."""
LISTED_S = 1.0
"""Seconds for which the list of all keys' ids is used, if guesses exceed that rate: valid keys are on it."""
THREADS_OF_ORG = 16
"""An org's requests that a worker answers in threads at once."""
UNAUTHORIZED = {"WWW-Authenticate": "Bearer"}


class Bucket:
    """A token bucket. Not thread-safe."""

    __slots__ = ("_burst", "_left", "_rate", "_read")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._read = burst, now

    def take(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until the next token."""
        self._left = min(self._burst, self._left + max(0.0, now - self._read) * self._rate)
        self._read = now
        if self._left >= 1.0:
            self._left -= 1.0
            return 0.0
        return (1.0 - self._left) / self._rate

    def give_back(self) -> None:
        """Give back a token."""
        self._left = min(self._burst, self._left + 1.0)


@dataclass(slots=True, kw_only=True)
class _Known:
    """A looked-up key: None for one that does not exist. Times are those of the monotonic clock.

    `read` is the time of the last answer, `tried` that of the last lookup, and `failed` is True if that failed.
    `refused` is the time of the last recorded refusal.
    """

    found: tuple[KeyRow, bytes] | None
    read: float
    tried: float
    failed: bool = False
    refused: float = float("-inf")

    def is_usable(self, now: float) -> bool:
        """Return True if a request does not need to wait for the database."""
        return now - self.read <= (GRACE_S if self.failed else KNOWN_S + REFRESH_S)

    def is_due(self, now: float) -> bool:
        """Return True if it is time for another lookup."""
        return now - self.read > KNOWN_S and now - self.tried > RETRY_S


class Auth:
    """The keys of a worker. Thread-safe."""

    def __init__(
        self, settings: Settings, storage: Storage, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage, self._monotonic = storage, monotonic
        self._static = dict([_static(given) for given in settings.static_keys])
        self._rate = settings.rate_per_second / settings.workers
        self._burst = max(1.0, settings.burst / settings.workers)
        self._lock = threading.Lock()
        self._known: FIFOCache[str, _Known] = FIFOCache(MAX_KNOWN)
        self._unknown: FIFOCache[str, _Known] = FIFOCache(MAX_KNOWN)
        self._buckets: FIFOCache[str, Bucket] = FIFOCache(MAX_KNOWN)
        self._lookups = Bucket(LOOKUPS_PER_SECOND, LOOKUP_BURST, monotonic())
        self._listing = threading.Lock()
        self._ids: frozenset[str] = frozenset()
        self._listed = float("-inf")
        self._background = ThreadPoolExecutor(1, "reasonblocks-keys")
        self._in_threads = Places(THREADS_OF_ORG, IN_PROGRESS)
        self._evaluating = Places(IN_PROGRESS, IN_PROGRESS)

    def check(self, key: str) -> Principal:
        """Return the caller with this key. May read the database. Raises `ApiError`, `StorageUnavailable`."""
        return self._by_cache(key) or self._by_database(key)

    async def caller(self, authorization: str) -> Principal:
        """Return the caller with an `Authorization` header, without blocking the event loop. Raises as `check`."""
        kind, _, key = authorization.partition(" ")
        if kind.lower() != "bearer":
            raise ApiError(401, "the key is missing: send it as Authorization: Bearer KEY", UNAUTHORIZED)
        known = self._by_cache(key.strip())
        return await run_in_threadpool(self._by_database, key.strip()) if known is None else known

    def close(self) -> None:
        self._background.shutdown(wait=True, cancel_futures=True)

    def take(self, principal: Principal) -> None:
        """Count a request of a caller. Raises `ApiError` 429 above the rate limit."""
        now = self._monotonic()
        with self._lock:
            bucket = self._buckets.get(principal.key_id)
            if bucket is None:
                bucket = self._buckets[principal.key_id] = Bucket(self._rate, self._burst, now)
            wait = bucket.take(now)
        if wait:
            raise ApiError(429, "too many requests with this key", {"Retry-After": str(math.ceil(wait))})

    def place(self, principal: Principal, scope: Scope) -> AbstractAsyncContextManager[None]:
        """Hold one of the places of a caller's org for a request. Raises `ApiError` 429 if too many wait for one.

        Requests of agents take no thread here, so only their number is limited.
        """
        places = self._evaluating if scope == "evaluate" else self._in_threads
        return places.of(principal.org_id)

    def forget(self, key_id: str) -> None:
        """Drop a key from the cache, because it was created or revoked."""
        with self._lock:
            self._known.pop(key_id, None)
            self._unknown.pop(key_id, None)

    def _by_cache(self, key: str) -> Principal | None:
        """Return the caller from the cache, or None if the key must be looked up. Raises `ApiError` 401."""
        if not key or len(key) > MAX_KEY_CHARS:
            raise _refused()
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        if (static := self._static.get(digest)) is not None:
            return static
        key_id, secret = _parts(key)
        now = self._monotonic()
        with self._lock:
            known = self._known.get(key_id) or self._unknown.get(key_id)
            if known is None or not known.is_usable(now):
                return None
            due = known.is_due(now)
            if due:
                known.tried = now
        if due:
            with suppress(RuntimeError):  # closed
                self._background.submit(self._refresh, key_id)
        return self._principal(known, secret)

    def _by_database(self, key: str) -> Principal:
        key_id, secret = _parts(key)
        return self._principal(self._look_up(key_id), secret)

    def _principal(self, known: _Known, secret: str) -> Principal:
        """Return the caller with a key. Record a refusal, at most once in `KNOWN_S` seconds."""
        try:
            return _principal(known, secret)
        except ApiError:
            now = self._monotonic()
            with self._lock:
                due = known.found is not None and now - known.refused >= KNOWN_S
                known.refused = now if due else known.refused
            if due and known.found is not None:
                with suppress(RuntimeError):  # closed
                    self._background.submit(self._note_refusal, known.found[0].key_id)
            raise

    def _note_refusal(self, key_id: str) -> None:
        with suppress(StorageUnavailable):
            self._storage.keys.refused(key_id, time.time())

    def _refresh(self, key_id: str) -> None:
        with suppress(ApiError, StorageUnavailable):
            self._look_up(key_id)

    def _look_up(self, key_id: str) -> _Known:
        """Look up a key in the database. While the database does not answer, a known key stays valid for a time."""
        now = self._monotonic()
        with self._lock:
            before = self._known.get(key_id)
            wait = 0.0 if before is not None else self._lookups.take(now)
        if wait and not self._is_listed(key_id):
            raise ApiError(429, "too many unknown keys", {"Retry-After": str(math.ceil(wait))})
        try:
            found = self._storage.keys.find(key_id)
        except StorageUnavailable:
            if before is None or now - before.read > GRACE_S:
                raise
            before.failed = True
            return before
        known = _Known(found=found, read=now, tried=now, refused=float("-inf") if before is None else before.refused)
        with self._lock:
            if found is not None and before is None:
                self._lookups.give_back()  # only guesses count
            (self._unknown if found is None else self._known)[key_id] = known
            (self._known if found is None else self._unknown).pop(key_id, None)
        if found is not None:
            with suppress(StorageUnavailable):  # the next lookup notes the use
                self._storage.keys.used([key_id], time.time())
        return known

    def _is_listed(self, key_id: str) -> bool:
        """Return True for the id of a key. However many are asked for, the database is read once in `LISTED_S`."""
        with self._listing:
            if key_id not in self._ids and self._monotonic() - self._listed >= LISTED_S:
                self._ids = frozenset(self._storage.keys.ids())
                self._listed = self._monotonic()
            return key_id in self._ids


def _static(given: str) -> tuple[bytes, Principal]:
    key, _, org = given.partition("@")
    digest = hashlib.sha256(key.encode()).digest()
    name = f"static-{digest.hex()[:8]}"
    return digest, Principal(org_id=org or DEFAULT_ORG, key_id=name, scopes=STATIC_SCOPES)


def _parts(key: str) -> tuple[str, str]:
    """Return the id and the secret of a key. Raises `ApiError` 401."""
    key_id, separator, secret = key.removeprefix(PREFIX).partition("_")
    if not key.startswith(PREFIX) or not separator or not key_id or not key.isascii():
        raise _refused()
    return key_id, secret


def _principal(known: _Known, secret: str) -> Principal:
    if known.found is None:
        raise _refused()
    row, expected = known.found
    if not hmac.compare_digest(hashlib.sha256(secret.encode()).digest(), expected):
        raise _refused()
    if row.revoked is not None or (row.expires is not None and row.expires <= time.time()):
        raise _refused()
    return Principal(
        org_id=row.org_id, key_id=row.key_id, scopes=frozenset(row.scopes), project_id=row.project_id,
        expires=row.expires,
    )  # fmt: skip


def _refused() -> ApiError:
    return ApiError(401, "the key is missing or not valid", UNAUTHORIZED)


SCOPE_OF: dict[Callable[..., Any], Scope] = {}
"""The scope that each dependency of a route asks for."""


def Caller(scope: Scope, *, streams: bool = False) -> Any:
    """Return the dependency for a route whose caller needs this scope. Streams have a limit of their own.

    >>> async def route(caller: Annotated[Principal, Caller("read")]) -> ...
    """

    async def caller_of(request: Request) -> AsyncIterator[Principal]:
        auth: Auth = request.app.state.server.auth
        principal = await auth.caller(request.headers.get("authorization", ""))
        auth.take(principal)
        if scope not in principal.scopes:
            raise ApiError(403, f"the key lacks the scope {scope!r}")
        async with nullcontext() if streams else auth.place(principal, scope):
            yield principal

    SCOPE_OF[caller_of] = scope
    return Depends(caller_of)
