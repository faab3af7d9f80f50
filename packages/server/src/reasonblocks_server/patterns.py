"""Stores and searches the patterns of all orgs. Each org sees its own patterns and the shared ones.

Shared patterns belong to no org. They are the starter library, and patterns that were added to the store without the
server. No key can change them.

The store has one name for each pattern of any org. So it keeps an org's patterns with a mark of the org at the end of
their ids, and two orgs may have different patterns with the same id. Those that were stored before have no mark.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from reasonblocks.backends.local_store import LocalStore
from reasonblocks.concurrency.interrupts import holding
from reasonblocks.patterns import pattern_json, pattern_of
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import Pattern, Tier
from reasonblocks.util.files import make_folder
from reasonblocks.wire import RetrieveRequest, RetrieveResponse

from ._shares import SharedPool
from .errors import ApiError
from .serving import answer_retrieve
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
MARK_BYTES = 4
"""Bytes of the hash of its org in the stored id of a pattern."""
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
        searching = self._pool.run(org_id, partial(self._retrieved, org_id, request))
        try:
            return await asyncio.wait_for(searching, max(0.0, left))
        except asyncio.TimeoutError:
            raise ApiError(503, "the search did not end within the client's deadline", {"Retry-After": "1"}) from None

    def list(self, org_id: str, tier: Tier | None = None, failure_type: str | None = None) -> tuple[Pattern, ...]:
        """Return an org's patterns and the shared ones, by id, including those that are off."""
        found = self.store.list(org_id, tier, failure_type=failure_type, layer=True)
        return tuple(sorted([_shown(org_id, pattern) for pattern in found], key=lambda pattern: pattern.id))

    def get(self, org_id: str, pattern_id: str) -> Pattern:
        """Return a pattern. Raises `ApiError` 404, also for another org's."""
        return _shown(org_id, self._found(org_id, pattern_id))

    def add(self, org_id: str, given: Sequence[Mapping[str, Any]]) -> tuple[Pattern, ...]:
        """Add patterns of an org, or replace those of its own with the same id, all or none; return them as stored.

        The org, the revision and the counts are set here, whatever was given.
        """
        if not 1 <= len(given) <= MAX_GIVEN:
            raise ApiError(422, f"patterns: must be a list of 1 to {MAX_GIVEN}")
        patterns = {pattern.id: pattern for pattern in (_given(org_id, one) for one in given)}
        with self._one_writer():
            stored = {name: self._name_of(org_id, name) for name in patterns}
            self.store.add([replace(pattern, id=stored[name]) for name, pattern in patterns.items()])
            return tuple([self.get(org_id, name) for name in patterns])

    def put(self, org_id: str, pattern_id: str, given: Mapping[str, Any], revision: int | None) -> Pattern:
        """Replace a pattern of an org if it has this revision. Raises `ApiError` 403, 404 or 412."""
        pattern = _given(org_id, {**given, "id": pattern_id})
        with self._one_writer():
            name = self._own(org_id, pattern_id, revision)
            self.store.add([replace(pattern, id=name)])
            return self.get(org_id, pattern_id)

    def remove(self, org_id: str, pattern_id: str, revision: int | None = None) -> None:
        """Remove a pattern of an org, if it has this revision. Raises `ApiError` 403, 404 or 412."""
        with self._one_writer():
            self.store.remove(self._own(org_id, pattern_id, revision, any_revision=revision is None))

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

    def _retrieved(self, org_id: str, request: RetrieveRequest) -> RetrieveResponse:
        found = answer_retrieve(self.store, request, org=org_id)
        for trace in found.traces:
            if trace.org_id == org_id:
                trace.pattern_id = trace.pattern_id.removesuffix(_mark(org_id))
        return found

    def _found(self, org_id: str, pattern_id: str) -> Pattern:
        """Return a pattern of the org, or else a shared one, as it is stored. Raises `ApiError` 404."""
        found = _stored(self.store, org_id, pattern_id)
        if found is None:
            raise ApiError(404, f"there is no pattern {pattern_id!r}")
        return found

    def _name_of(self, org_id: str, pattern_id: str) -> str:
        """Return the stored id of an org's pattern, also of a new one. Raises `ApiError` 409 for a shared one's."""
        found = _stored(self.store, org_id, pattern_id)
        if found is None:
            return f"{pattern_id}{_mark(org_id)}"
        if found.org_id is None:
            raise ApiError(409, f"the id {pattern_id!r} is that of a shared pattern: choose another one")
        return found.id

    def _own(self, org_id: str, pattern_id: str, revision: int | None, *, any_revision: bool = False) -> str:
        """Return the stored id of an org's pattern that has this revision."""
        found = self._found(org_id, pattern_id)
        if found.org_id is None:
            raise ApiError(403, f"the pattern {pattern_id!r} is shared by all orgs, and no key can change it")
        if not any_revision and found.revision != revision:
            raise ApiError(412, f"the pattern has the revision {found.revision}: send it as If-Match")
        return found.id

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
        stored = {name: _stored(self._store, self._org_id, name) for name in {*given}}
        self._store.count([found.id for name in given if (found := stored[name]) is not None], what)


def _stored(store: Any, org_id: str, pattern_id: str) -> Pattern | None:
    """Return a pattern of an org, or else a shared one, as it is stored; None if the org sees none of this id."""
    for name in (f"{pattern_id}{_mark(org_id)}", pattern_id):
        found: Pattern | None = store.get(name)
        if found is not None and found.org_id in (None, org_id):
            return found
    return None


def _mark(org_id: str) -> str:
    return f"@{blake2b(org_id.encode(), digest_size=MARK_BYTES).hexdigest()}"


def _shown(org_id: str, pattern: Pattern) -> Pattern:
    """Return a stored pattern with the id by which its org knows it."""
    return replace(pattern, id=pattern.id.removesuffix(_mark(org_id))) if pattern.org_id == org_id else pattern


def as_json(pattern: Pattern) -> dict[str, Any]:
    """Return a pattern as JSON, always with its org and its revision."""
    return {**pattern_json(pattern), "org_id": pattern.org_id, "revision": pattern.revision}


def _given(org_id: str, given: Mapping[str, Any]) -> Pattern:
    if not isinstance(given, Mapping):
        raise ApiError(422, "pattern: must be an object")
    own = {name: value for name, value in given.items() if name not in OWN_FIELDS}
    return replace(pattern_of({**own, "org_id": org_id}), revision=1)


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
