"""Stores and searches the findings of codebases, for all orgs, where the patterns are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.types import Codebase
from reasonblocks.util.text import preview
from reasonblocks.wire import ClearResponse, InvalidateRequest, InvalidateResponse

from .errors import ApiError
from .serving import cleared, invalidated
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

AT_ONCE = 8
"""The most requests of a worker that use the findings at once. Others wait within their deadlines."""
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
        self._pool = ThreadPoolExecutor(AT_ONCE, "reasonblocks-findings")

    async def run(self, work: Callable[[FindingStore], T], ends: float | None, seconds: float = SECONDS) -> T:
        """Return the result of `work`, without blocking the event loop. Raises `ApiError` 503 at `ends`.

        Work that has begun goes on after that.
        """
        left = seconds if ends is None else ends - time.monotonic()
        working = asyncio.get_running_loop().run_in_executor(self._pool, work, self.store)
        try:
            return await asyncio.wait_for(working, max(0.0, left))
        except asyncio.TimeoutError:
            detail = "the findings were not available within the client's deadline"
            raise ApiError(503, detail, {"Retry-After": "1"}) from None

    def invalidate(
        self, org_id: str, codebase_id: str, request: InvalidateRequest, record: Record
    ) -> InvalidateResponse:
        """Remove findings about files and in folders, and single ones. A removal is recorded."""
        found = invalidated(self.store, org_id, codebase_id, request)
        if found.invalidated:
            record("finding.invalidate", _named(codebase_id, found.invalidated))
        return found

    def clear(self, org_id: str, codebase_id: str, record: Record) -> ClearResponse:
        """Remove all findings of a codebase. A removal is recorded."""
        found = cleared(self.store, org_id, codebase_id)
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
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.store.close()


def _named(codebase_id: str, count: int) -> str:
    return f"{preview(codebase_id, NAMED_CHARS)}: {count} findings"


def _store(settings: Settings, patterns: Any) -> FindingStore:
    if settings.qdrant_url is None:
        return LocalFindings(settings.patterns_file)
    from reasonblocks.backends.qdrant_store import QdrantFindings  # its client takes a second to import

    found: FindingStore = QdrantFindings.beside(patterns)
    return found
