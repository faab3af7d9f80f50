"""`CodebaseMemory`: stores and recalls findings about one codebase, masks their secrets, and drops what is stale."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from ..concurrency.workers import in_daemon
from ..exceptions import BadAnswer, ConfigError
from ..findings import (
    MOST_RECALLED,
    Checkout,
    Comparison,
    checked_codebase,
    checked_finding_id,
    checked_query,
    finding_id,
)
from ..render.sanitise import sanitise
from ..types import JSON, Finding, RecalledFinding
from ..util.json import is_number
from ._clean import FIELDS, Cleaner, texts
from .stores import finding_store, is_own

if TYPE_CHECKING:
    from ..ports import Embedder, FindingStore, PatternStore

T = TypeVar("T")
Stale = Literal["drop", "mark"]
PAGE = 500
"""Findings that are read from a store at once."""


class CodebaseMemory:
    """Findings about one codebase, kept for later runs. Methods with an `a` before their name are for asyncio.

    `codebase_id` is any name, such as "acme/search". Findings are kept in `store`: the path of a SQLite file, a
    `LocalStore` or `QdrantStore` of patterns whose file or server and whose embedder are then shared, or an own
    `FindingStore`. Without it they go to the ReasonBlocks server at `base_url` (REASONBLOCKS_BASE_URL) with `api_key`
    (REASONBLOCKS_API_KEY), else to the Qdrant server at QDRANT_URL (QDRANT_API_KEY), else to the file
    `~/.reasonblocks/patterns.db` (in REASONBLOCKS_HOME), searched with `embedder`. An empty `base_url` means no server.
    Findings belong to the org of the key on a ReasonBlocks server, elsewhere to `org_id`.

    `root` is the folder of the codebase's files, by default the current one. A finding about a file in it remembers the
    file's hash; when the file changes, the finding is stale. `recall` drops stale findings or, with `stale="mark"`,
    marks them. A file that is missing makes a finding stale only if `root` was given.

    Every text passes `redact`, then secrets in it are masked, and only then is it stored or searched for. Storing needs
    the extra `memory`, and so do the tools for agents; without it `store` raises `ExtraMissing`, and secrets in queries
    and paths are masked by our own rules alone.

    The constructor raises `ConfigError`, and `ExtraMissing` if the store needs an extra. All methods raise
    `ConfigError` for an invalid argument, `StoreError` or `Unavailable` if the store fails, and what `redact` and
    `embedder` raise; then nothing has changed. A `store_many` that takes several requests of a server, which are
    documented at its stores, may have stored some.
    Thread-safe if the store is.
    """

    def __init__(
        self,
        codebase_id: str,
        *,
        store: FindingStore | PatternStore | str | os.PathLike[str] | None = None,
        root: str | os.PathLike[str] | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        org_id: str = "default",
        embedder: Embedder | None = None,
        stale: Stale = "drop",
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._cleaner = Cleaner(redact)
        self._codebase = checked_codebase(org_id, codebase_id)
        self._cleaner.refuse_secret("codebase_id", codebase_id)
        if stale not in get_args(Stale):
            raise ConfigError.unknown("stale", stale, get_args(Stale))
        self._drops = stale == "drop"
        self._checkout = Checkout(root)
        self._store = finding_store(store, base_url=base_url, api_key=api_key, embedder=embedder)
        self._owns_store = is_own(store)

    @property
    def codebase_id(self) -> str:
        """The id of the codebase."""
        return self._codebase.codebase_id

    def store(
        self,
        content: str,
        file_path: str | os.PathLike[str] = "",
        finding_type: str = "note",
        metadata: Mapping[str, JSON] | None = None,
    ) -> str:
        """Store a finding and return its id. The same finding again replaces itself, with the file's state of now."""
        about = {"file_path": file_path, "finding_type": finding_type, "metadata": metadata or {}}
        return self._kept([{"content": content, **about}])[0].finding_id

    def store_many(self, findings: Iterable[Finding | Mapping[str, Any]]) -> tuple[str, ...]:
        """Store findings, all or none, and return their ids. A mapping has the arguments of `store`."""
        return tuple([finding.finding_id for finding in self._kept(findings)])

    def recall(self, query: str, top_k: int = 5, score_threshold: float = 0.25) -> tuple[RecalledFinding, ...]:
        """Return at most `top_k` findings that score at least `score_threshold`, the best first.

        Their texts are without frames, roles and template tokens, and a finding of nothing else is left out. Of the
        best 50 findings, those that are stale are replaced by the next.
        """
        query = self._cleaner.text(checked_query(query))
        if type(top_k) is not int or not 1 <= top_k <= MOST_RECALLED:
            raise ConfigError("top_k", top_k, f"must be a whole number from 1 to {MOST_RECALLED}")
        if not is_number(score_threshold) or not 0 <= score_threshold <= 1:
            raise ConfigError("score_threshold", score_threshold, "must be a number from 0 to 1")
        compared, kept = Comparison(self._checkout), list[RecalledFinding]()
        for most in (min(2 * top_k, MOST_RECALLED), MOST_RECALLED):
            found = self._store.search(self._codebase, query, top_k=most, score_threshold=score_threshold)
            kept = [shown for finding in found if (shown := self._shown(finding, compared)) is not None]
            if len(kept) >= top_k or len(found) < most:
                break
        kept.sort(key=lambda finding: (-finding.score, finding.freshness == "stale"))
        return tuple(kept[:top_k])

    def list_all(self) -> tuple[Finding, ...]:
        """Return all findings as they are stored, by path, time and id."""
        return tuple(sorted(self._all(), key=lambda one: (one.file_path, one.created_at, one.finding_id)))

    def coverage_for(self, paths: Iterable[str | os.PathLike[str]]) -> dict[str, int]:
        """Return, for each file or folder, the number of findings about it that are not stale."""
        named = {path: self._path(path) for path in texts("paths", paths)}
        asked, counts = {*named.values()}, Counter[str]()
        compared = Comparison(self._checkout)
        for finding in self._all():
            covering = asked.intersection(_folders(finding.file_path))
            if covering and compared.freshness(finding) != "stale":
                counts.update(covering)
        return {os.fspath(given): counts[path] for given, path in named.items()}

    def invalidate(self, paths: Iterable[str | os.PathLike[str]]) -> int:
        """Remove the findings about these files, and about all files in these folders; return their number."""
        named = [self._path(path) for path in texts("paths", paths)]
        if "" in named:
            raise ConfigError("paths", ".", "must name files or folders in the codebase: clear() removes all findings")
        return self._store.remove(self._codebase, file_paths=named) if named else 0

    def stale(self, root: str | os.PathLike[str] | None = None) -> tuple[Finding, ...]:
        """Return the findings about files that have changed or are gone, in `list_all`'s order."""
        compared = Comparison(self._checkout if root is None else Checkout(root))
        return tuple([finding for finding in self.list_all() if compared.freshness(finding) == "stale"])

    def invalidate_changed(self, root: str | os.PathLike[str] | None = None) -> int:
        """Remove the findings about files that have changed or are gone; return their number."""
        return self.forget([finding.finding_id for finding in self.stale(root)])

    def forget(self, finding_ids: Iterable[str]) -> int:
        """Remove the findings with these ids; return the number of those that there were."""
        named = [checked_finding_id(name) for name in texts("finding_ids", finding_ids)]
        return self._store.remove(self._codebase, finding_ids=named) if named else 0

    def clear(self) -> int:
        """Remove all findings of the codebase; return their number."""
        return self._store.clear(self._codebase)

    def close(self) -> None:
        """Close the store, unless it is the caller's own. The next use opens it again."""
        if self._owns_store:
            self._store.close()

    async def astore(
        self,
        content: str,
        file_path: str | os.PathLike[str] = "",
        finding_type: str = "note",
        metadata: Mapping[str, JSON] | None = None,
    ) -> str:
        """Run `store` in a thread."""
        return await in_daemon(partial(self.store, content, file_path, finding_type, metadata))

    async def astore_many(self, findings: Iterable[Finding | Mapping[str, Any]]) -> tuple[str, ...]:
        """Run `store_many` in a thread."""
        return await in_daemon(partial(self.store_many, findings))

    async def arecall(self, query: str, top_k: int = 5, score_threshold: float = 0.25) -> tuple[RecalledFinding, ...]:
        """Run `recall` in a thread."""
        return await in_daemon(partial(self.recall, query, top_k, score_threshold))

    async def alist_all(self) -> tuple[Finding, ...]:
        """Run `list_all` in a thread."""
        return await in_daemon(self.list_all)

    async def acoverage_for(self, paths: Iterable[str | os.PathLike[str]]) -> dict[str, int]:
        """Run `coverage_for` in a thread."""
        return await in_daemon(partial(self.coverage_for, paths))

    async def ainvalidate(self, paths: Iterable[str | os.PathLike[str]]) -> int:
        """Run `invalidate` in a thread."""
        return await in_daemon(partial(self.invalidate, paths))

    async def astale(self, root: str | os.PathLike[str] | None = None) -> tuple[Finding, ...]:
        """Run `stale` in a thread."""
        return await in_daemon(partial(self.stale, root))

    async def ainvalidate_changed(self, root: str | os.PathLike[str] | None = None) -> int:
        """Run `invalidate_changed` in a thread."""
        return await in_daemon(partial(self.invalidate_changed, root))

    async def aforget(self, finding_ids: Iterable[str]) -> int:
        """Run `forget` in a thread."""
        return await in_daemon(partial(self.forget, finding_ids))

    async def aclear(self) -> int:
        """Run `clear` in a thread."""
        return await in_daemon(self.clear)

    async def aclose(self) -> None:
        """Run `close` in a thread."""
        await in_daemon(self.close)

    def __enter__(self) -> CodebaseMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> CodebaseMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.codebase_id!r})"

    def _need_detectors(self) -> None:
        """Raise `ExtraMissing` if nothing can be stored."""
        self._cleaner.need_detectors()

    def _kept(self, findings: Iterable[Finding | Mapping[str, Any]]) -> tuple[Finding, ...]:
        """Store findings and return them as they are stored: masked, with their ids and the state of their files."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        made = [self._made(given, now) for given in texts("findings", findings)]
        put = {finding.finding_id: finding for finding in made}
        if not put:
            return ()
        ids = self._store.put(self._codebase, list(put.values()))
        if len(ids) != len(put):
            raise BadAnswer("the ids that the store returned", len(ids), f"must be {len(put)}")
        named = dict(zip(put, ids, strict=True))
        return tuple([replace(finding, finding_id=named[finding.finding_id]) for finding in made])

    def _made(self, given: object, now: str) -> Finding:
        """Return a finding as it is stored. Its path is made relative first, because a root may look like a secret."""
        found = self._cleaner.finding(_finding_of(given), self._checkout.relative)
        file_hash, git_blob = self._checkout.state(found.file_path)
        return replace(
            found,
            finding_id=finding_id(self._codebase, found),
            created_at=now,
            file_hash=file_hash,
            git_blob=git_blob,
        )

    def _path(self, path: object) -> str:
        return self._cleaner.path(path, self._checkout.relative)

    def _shown(self, finding: RecalledFinding, compared: Comparison) -> RecalledFinding | None:
        """Return a finding with sanitised texts; None for one of which nothing is left, or that is dropped as stale."""
        freshness, content = compared.freshness(finding), sanitise(finding.content)
        if not content or (freshness == "stale" and self._drops):
            return None
        return replace(
            finding,
            content=content,
            file_path=sanitise(finding.file_path),
            finding_type=sanitise(finding.finding_type),
            freshness=freshness,
        )

    def _all(self) -> Iterator[Finding]:
        after = ""
        while page := self._store.page(self._codebase, after=after, limit=PAGE):
            yield from page
            after = page[-1].finding_id


def _finding_of(given: object) -> Finding:
    if isinstance(given, Finding):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError("findings", type(given).__name__, "each must be a Finding, or a mapping with its content")
    for name in given:
        if name not in FIELDS:
            raise ConfigError.unknown("findings", name, FIELDS)
    if "content" not in given:
        raise ConfigError("findings", sorted(given), "each must have a content")
    return Finding(**given)


def _folders(path: str) -> Iterator[str]:
    """Yield a file's path and those of all folders that it is in; "" is the folder of all files."""
    while path:
        yield path
        path = path.rpartition("/")[0]
        if not path:
            yield path
