"""Stores and searches the findings of codebases, for all orgs, where the patterns are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.types import Codebase
from reasonblocks.util.text import preview
from reasonblocks.wire import ClearResponse, InvalidateRequest, InvalidateResponse

from ._shares import SharedPool
from .errors import ApiError
from .serving import answer_clear, answer_invalidate
from .settings import Settings
from .values import Scope

if TYPE_CHECKING:
    from reasonblocks.ports import FindingStore

T = TypeVar("T")
Record: TypeAlias = Callable[[str, str], None]
"""Takes the action and the object of a change, for the audit."""

CHANGING: Scope = "evaluate"
"""The scope of keys that store and remove findings."""
NAMED_CHARS = 200
"""Characters of a codebase's id in the audit."""

AT_ONCE, SHARE = 8, 2
"""The most requests of a worker that use the findings at once, and those of one org. Others wait till their deadlines.
"""
CHANGES_AT_ONCE = 2
"""Requests that change findings at once, by threads of their own; an org has one."""
SECONDS = 5.0
"""The deadline of a request, in seconds, if the client sends none."""
STORE_SECONDS = 60.0
"""The same for a request that stores findings: masking the secrets of the largest one takes some 15 s."""


class Findings:
    """The findings in the file of the patterns, or on their Qdrant server. Safe to use from any thread and process.

    `patterns` is the store of the patterns.
    """

    def __init__(self, settings: Settings, patterns: Any) -> None:
        self.store = _store(settings, patterns)
        self._reads = SharedPool("reasonblocks-findings", AT_ONCE, SHARE)
        self._changes = SharedPool("reasonblocks-changes", CHANGES_AT_ONCE, 1)

    async def read(self, org_id: str, work: Callable[[FindingStore], T], ends: float | None) -> T:
        """Return the result of `work`, without blocking the event loop. Raises `ApiError` 503 at `ends`."""
        return await self._run(self._reads, org_id, work, SECONDS, ends)

    async def change(
        self, org_id: str, work: Callable[[FindingStore], T], ends: float | None, seconds: float = SECONDS
    ) -> T:
        """Return the result of `work`, as `read`. A change that has begun goes on after `ends`."""
        return await self._run(self._changes, org_id, work, seconds, ends)

    async def _run(
        self, pool: SharedPool, org_id: str, work: Callable[[FindingStore], T], seconds: float, ends: float | None
    ) -> T:
        left = seconds if ends is None else ends - time.monotonic()
        try:
            return await asyncio.wait_for(pool.run(org_id, partial(work, self.store)), max(0.0, left))
        except asyncio.TimeoutError:
            detail = "the findings were not available within the client's deadline"
            raise ApiError(503, detail, {"Retry-After": "1"}) from None

    def invalidate(
        self, org_id: str, codebase_id: str, request: InvalidateRequest, record: Record
    ) -> InvalidateResponse:
        """Remove findings about files and in folders, and single ones. A removal is recorded."""
        found = answer_invalidate(self.store, org_id, codebase_id, request)
        if found.invalidated:
            record("finding.invalidate", _named(codebase_id, found.invalidated))
        return found

    def clear(self, org_id: str, codebase_id: str, record: Record) -> ClearResponse:
        """Remove all findings of a codebase. A removal is recorded."""
        found = answer_clear(self.store, org_id, codebase_id)
        if found.cleared:
            record("finding.clear", _named(codebase_id, found.cleared))
        return found

    def erase(self, org_id: str) -> None:
        """Remove all findings of an org."""
        removed = 1
        while removed:
            scopes = [Codebase(org_id=org_id, codebase_id=one.codebase_id) for one in self.store.codebases(org_id)]
            removed = sum(map(self.store.clear, scopes))

    def close(self) -> None:
        self._reads.close()
        self._changes.close()
        self.store.close()


def _named(codebase_id: str, count: int) -> str:
    return f"{preview(codebase_id, NAMED_CHARS)}: {count} finding{'s' * (count != 1)}"


def _store(settings: Settings, patterns: Any) -> FindingStore:
    if settings.qdrant_url is None:
        return LocalFindings(settings.patterns_file)
    from reasonblocks.backends.qdrant_store import QdrantFindings  # its client takes a second to import

    found: FindingStore = QdrantFindings.beside(patterns)
    return found
