"""Stores and searches the patterns of all orgs. Each org sees its own patterns and the shared ones.

Shared patterns belong to no org. They are the starter library, and patterns that were added to the store without the
server. No key can change them.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.concurrency.interrupts import holding
from reasonblocks.patterns import pattern_json, pattern_of
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import Pattern, Tier
from reasonblocks.util.files import make_folder
from reasonblocks.util.json import evolve
from reasonblocks.wire import RetrieveRequest, RetrieveResponse

from ._shares import SharedPool
from .errors import ApiError
from .serving import retrieved
from .settings import Settings

try:
    import fcntl
except ImportError:  # Windows, where one process writes
    fcntl = None  # type: ignore[assignment]  # its absence is tested

MAX_GIVEN = 1_000
"""The most patterns in one request."""
SEARCHES, SHARE = 8, 4
"""The most searches of a worker at once, and those of one org. Others wait within their deadlines."""
SEARCH_S = 5.0
"""The deadline of a search, in seconds, if the client sends none."""
OWN_FIELDS = ("revision", "created_at", "stats", "org_id")
"""Fields of a pattern that the server sets."""


class Patterns:
    """The patterns in a file, or on a Qdrant server. Safe to use from any thread and from several processes.

    Raises `ApiError` for a forbidden or impossible change, `ConfigError` for an invalid pattern, and `StoreError` or
    `Unavailable` if the patterns cannot be read or written.
    """

    def __init__(self, settings: Settings) -> None:
        self.store = _store(settings)
        self._writing = threading.Lock()
        self._lock_file = settings.data / "patterns.lock"
        self._pool = SharedPool("reasonblocks-search", SEARCHES, SHARE)

    async def search(self, org_id: str, request: RetrieveRequest, ends: float | None) -> RetrieveResponse:
        """Return the patterns for a request, without blocking the event loop. Raises `ApiError` 503 at `ends`."""
        left = SEARCH_S if ends is None else ends - time.monotonic()
        searching = self._pool.run(org_id, partial(retrieved, self.store, request, org=org_id))
        try:
            return await asyncio.wait_for(searching, max(0.0, left))
        except asyncio.TimeoutError:
            raise ApiError(503, "the search did not end within the client's deadline", {"Retry-After": "1"}) from None

    def list(self, org_id: str, tier: Tier | None = None, failure_type: str | None = None) -> tuple[Pattern, ...]:
        """Return an org's patterns and the shared ones, by id, including those that are off."""
        found: tuple[Pattern, ...] = self.store.list(org_id, tier, failure_type=failure_type, layer=True)
        return found

    def get(self, org_id: str, pattern_id: str) -> Pattern:
        """Return a pattern. Raises `ApiError` 404, also for another org's."""
        found: Pattern | None = self.store.get(pattern_id)
        if found is None or found.org_id not in (None, org_id):
            raise ApiError(404, f"there is no pattern {pattern_id!r}")
        return found

    def add(self, org_id: str, given: Sequence[Mapping[str, Any]]) -> tuple[Pattern, ...]:
        """Add patterns of an org, or replace those of its own with the same id, all or none; return them as stored.

        The org, the revision and the counts are set here, whatever was given.
        """
        if not 1 <= len(given) <= MAX_GIVEN:
            raise ApiError(422, f"patterns: must be a list of 1 to {MAX_GIVEN}")
        patterns = {pattern.id: pattern for pattern in (_given(org_id, one) for one in given)}
        with self._one_writer():
            for name in patterns:
                self._check_free(org_id, name)
            self.store.add(patterns.values())
            return tuple([self.get(org_id, name) for name in patterns])

    def put(self, org_id: str, pattern_id: str, given: Mapping[str, Any], revision: int | None) -> Pattern:
        """Replace a pattern of an org if it has this revision. Raises `ApiError` 403, 404 or 412."""
        pattern = _given(org_id, {**given, "id": pattern_id})
        with self._one_writer():
            self._check_own(org_id, pattern_id, revision)
            self.store.add([pattern])
            return self.get(org_id, pattern_id)

    def remove(self, org_id: str, pattern_id: str, revision: int | None = None) -> None:
        """Remove a pattern of an org, if it has this revision. Raises `ApiError` 403, 404 or 412."""
        with self._one_writer():
            self._check_own(org_id, pattern_id, revision, any_revision=revision is None)
            self.store.remove(pattern_id)

    def erase(self, org_id: str) -> None:
        """Remove all patterns of an org."""
        with self._one_writer():
            for pattern in self.store.list(org_id, layer=False):
                if pattern.org_id == org_id:
                    self.store.remove(pattern.id)

    def counts(self, org_id: str) -> OrgCounts:
        """Return the counts of the patterns that an org sees."""
        return OrgCounts(self.store, org_id)

    def close(self) -> None:
        self._pool.close()
        self.store.close()

    def _check_free(self, org_id: str, pattern_id: str) -> None:
        found = self.store.get(pattern_id)
        if found is not None and found.org_id != org_id:
            raise ApiError(409, f"the id {pattern_id!r} is taken: choose another one")

    def _check_own(self, org_id: str, pattern_id: str, revision: int | None, *, any_revision: bool = False) -> None:
        found = self.get(org_id, pattern_id)
        if found.org_id is None:
            raise ApiError(403, f"the pattern {pattern_id!r} is shared by all orgs, and no key can change it")
        if not any_revision and found.revision != revision:
            raise ApiError(412, f"the pattern has the revision {found.revision}: send it as If-Match")

    @holding
    def _one_writer(self) -> Iterator[None]:
        """Hold a lock over all writers on this host, from the check of a pattern to its change."""
        with self._writing, _locked(self._lock_file):
            yield


class OrgCounts:
    """The counts of the patterns that one org sees. Other ids are ignored."""

    def __init__(self, store: Any, org_id: str) -> None:
        self._store, self._org_id = store, org_id

    def count(self, ids: Iterable[str], what: str) -> None:
        """Increment the count `what` of each pattern. Raises `StoreError` and `Unavailable`."""
        given = list(ids)
        found = {name: self._store.get(name) for name in {*given}}
        own = {name for name, seen in found.items() if seen is not None and seen.org_id in (None, self._org_id)}
        self._store.count([name for name in given if name in own], what)


def as_json(pattern: Pattern) -> dict[str, Any]:
    """Return a pattern as JSON, always with its org and its revision."""
    return {**pattern_json(pattern), "org_id": pattern.org_id, "revision": pattern.revision}


def _given(org_id: str, given: Mapping[str, Any]) -> Pattern:
    if not isinstance(given, Mapping):
        raise ApiError(422, "pattern: must be an object")
    own = {name: value for name, value in given.items() if name not in OWN_FIELDS}
    return evolve(pattern_of({**own, "org_id": org_id}), revision=1)


def _store(settings: Settings) -> Any:
    layer = starter_patterns()
    if settings.qdrant_url is None:
        make_folder(settings.data)
        return LocalStore(settings.patterns_file, layer=layer)
    from reasonblocks.backends.qdrant_store import QdrantStore  # its client takes a second to import

    return QdrantStore(settings.qdrant_url, settings.qdrant_api_key, layer=layer)


@holding
def _locked(path: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    make_folder(path.parent)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
