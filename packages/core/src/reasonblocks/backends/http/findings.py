"""Keeps the findings of codebases on a server, where all processes of a team share them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field, ValidationError

from ...exceptions import BadAnswer, ConfigError, StoreError, StoreFull, Unavailable
from ...findings import check_finding, finding_id
from ...types import JSON, Codebase, CodebaseSummary, Finding, RecalledFinding
from ...util.json import compact
from ...wire import (
    MOST_LISTED,
    MOST_STORED,
    ClearResponse,
    CodebaseList,
    FindingsResponse,
    InvalidateResponse,
    WireFinding,
    WireRecalled,
)
from ..stores.stored_findings import LeftOut
from ._connections import Ask, Reply, json_object
from ._exchange import Exchange
from .evaluator import JSON_BODY, validate_answer

logger = logging.getLogger("reasonblocks")

BACKEND = "the memory of codebases"
SECONDS = 5.0
"""Seconds for a request: no step waits for it, but a tool call of an agent does. The server's own are as many."""
SECONDS_PER_MB = 10.0
"""More seconds for a request that stores findings: the server masks their texts, about 0.4 MB a second."""
BODY_BYTES = 4_500_000
"""The largest body of findings; servers refuse one over 5 MB."""
ANSWER_BYTES = 10_000_000
"""The largest answer that is read. A server that knows no pages lists all findings of a codebase in one."""
MOST_REMOVED = 2_000
"""Paths or ids of one request: with 512 characters each, of up to 4 bytes, they fit into a body of 5 MB."""
WRONG = (400, 413, 415, 422)
"""Statuses of a request that will be refused again."""
ABSENT = (404, 405, 501)
"""Statuses of a server without the route."""

AnswerT = TypeVar("AnswerT", bound=BaseModel)
WireT = TypeVar("WireT", bound=WireFinding)
T = TypeVar("T", bound=Finding)


class _Recalled(BaseModel):
    """The answer to a search, whose findings are read one by one."""

    results: list[Any] = Field(default_factory=list)


class _Listed(BaseModel):
    """A page of findings, which are read one by one."""

    findings: list[Any] = Field(default_factory=list)
    next: str | None = None


class HttpFindings:
    """The findings of the key's org on a server; the `org_id` of a codebase is not sent.

    A `put` of more than 500 findings or 4.5 MB takes several requests, and each stores its findings all or none; if a
    later one fails, the error has the number of those that are stored. The same holds with servers that take only one
    finding per request. A `remove` of more than 2,000 ids or paths takes several requests, too. A failure is none of
    the breaker's, because runs go on without codebase memory.

    A finding of an answer that cannot be read, or is beyond the limits, is left out and logged once.

    Methods raise `Unavailable`, `BadAnswer`, and for what the server refuses `ConfigError` or `StoreError`.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._takes_many = True
        self._said_forbidden = False
        self._left_out = LeftOut(exchange.address.shown)

    def put(self, codebase: Codebase, findings: Sequence[Finding]) -> tuple[str, ...]:
        """Store findings and return their ids, which the server computes."""
        stored: list[str] = []
        for batch in _batches([compact(_body(finding)) for finding in findings]):
            try:
                for ids in self._put(codebase, batch):
                    stored += ids
            except (Unavailable, StoreError, ConfigError, BadAnswer) as exc:
                if not stored:
                    raise
                raise _partly(exc, len(stored), len(findings)) from exc
        return tuple(stored)

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        """Return the findings that the server recalls, the best first."""
        body = compact({"query": query, "top_k": top_k, "score_threshold": score_threshold})
        answer = self._answer(_Recalled, Ask(path=f"{_place(codebase)}/search", body=body.encode()))
        read = self._each(codebase, answer.results, WireRecalled, WireRecalled.recalled)
        found = [finding for finding in read if finding.score >= score_threshold]
        return tuple(sorted(found, key=lambda finding: (-finding.score, finding.finding_id))[:top_k])

    def page(self, codebase: Codebase, *, after: str = "", limit: int = 100) -> tuple[Finding, ...]:
        """Return findings by id. A server that knows no pages sends all of its findings for each."""
        found: dict[str, Finding] = {}
        while len(found) < limit:
            query = urlencode({"limit": min(limit - len(found), MOST_LISTED), "after": after})
            answer = self._answer(_Listed, Ask(path=f"{_place(codebase)}?{query}"))
            read = self._each(codebase, answer.findings, WireFinding, WireFinding.finding)
            found |= {finding.finding_id: finding for finding in read if finding.finding_id > after}
            if answer.next is None:
                break
            if answer.next <= after:
                raise BadAnswer(self._exchange.address.shown, answer.next, f"the next page must be after {after!r}")
            if not answer.findings:  # such pages could go on forever
                raise BadAnswer(self._exchange.address.shown, answer.next, "a page before another must have a finding")
            after = answer.next
        return tuple([found[name] for name in sorted(found)[:limit]])

    def remove(self, codebase: Codebase, *, finding_ids: Sequence[str] = (), file_paths: Sequence[str] = ()) -> int:
        """Remove findings; count them. A server that implements only the shared contract ignores `finding_ids`."""
        bodies: list[dict[str, list[str]]] = [
            {name: list(given[at : at + MOST_REMOVED])}
            for name, given in (("finding_ids", finding_ids), ("file_paths", file_paths))
            for at in range(0, len(given), MOST_REMOVED)
        ]
        path, count = f"{_place(codebase)}/invalidate", 0
        for body in bodies:
            sent = compact({"file_paths": [], **body}).encode()
            count += self._answer(InvalidateResponse, Ask(path=path, body=sent)).invalidated
        return count

    def clear(self, codebase: Codebase) -> int:
        """Remove all findings; return their number, 0 if the server does not count them."""
        return self._answer(ClearResponse, Ask(path=_place(codebase), verb="DELETE")).cleared

    def codebases(self, org_id: str) -> tuple[CodebaseSummary, ...]:
        """Return the codebases of the key's org. Raises `Unavailable` for a server that does not list them."""
        answer = self._answer(CodebaseList, Ask(path="/findings"), absent="this server does not list codebases")
        return tuple(sorted([one.summary() for one in answer.codebases], key=lambda one: one.codebase_id))

    def close(self) -> None:
        self._exchange.close()

    def _put(self, codebase: Codebase, batch: Sequence[str]) -> Iterator[list[str]]:
        """Store a batch in one request, or one by one; yield the ids of each request."""
        ask = Ask(path=_place(codebase))
        if len(batch) > 1 and self._takes_many:
            reply = self._sent(replace(ask, body=f'{{"findings":[{",".join(batch)}]}}'.encode()))
            if not _knows_no_list(reply):
                ids = self._read(FindingsResponse, reply).finding_ids
                if len(ids) != len(batch):
                    raise BadAnswer(self._exchange.address.shown, f"{len(ids)} ids", f"must be {len(batch)}")
                yield ids
                return
            self._takes_many = False
        for body in batch:
            yield [self._answer(FindingsResponse, replace(ask, body=body.encode())).finding_id]

    def _each(
        self, codebase: Codebase, items: Iterable[object], model: type[WireT], made: Callable[[WireT], T]
    ) -> Iterator[T]:
        """Yield the findings of an answer that can be read, with their ids, which other servers do not send."""
        for number, item in enumerate(items, 1):
            try:
                found = check_finding(made(model.model_validate(item)))
            except (ValidationError, ConfigError) as exc:
                name = item.get("finding_id") if isinstance(item, Mapping) else None
                self._left_out.add(repr(name) if name else f"number {number} of an answer", _wrong(exc))
            else:
                yield found if found.finding_id else replace(found, finding_id=finding_id(codebase, found))

    def _answer(self, model: type[AnswerT], ask: Ask, absent: str = "") -> AnswerT:
        return self._read(model, self._sent(ask), absent)

    def _read(self, model: type[AnswerT], reply: Reply, absent: str = "") -> AnswerT:
        if not reply.is_success:
            raise self._error(reply, absent)
        address = self._exchange.address
        try:
            return validate_answer(model, address.shown, json_object(address.shown, reply.body))
        except BadAnswer as exc:
            raise address.without_key(exc) from None

    def _sent(self, ask: Ask) -> Reply:
        self._exchange.check(BACKEND)
        seconds = SECONDS + SECONDS_PER_MB * len(ask.body or b"") / 1_000_000
        headers = {**JSON_BODY, "reasonblocks-deadline-ms": str(int(seconds * 1000))}
        return self._exchange.send(replace(ask, headers=headers, most_bytes=ANSWER_BYTES), seconds)

    def _error(self, reply: Reply, absent: str) -> Unavailable | StoreError | ConfigError:
        """Return the error for a refused request. A wrong key is reported once, as for every other request."""
        shown, reason = self._exchange.address.shown, self._exchange.reason(reply)
        if reply.status in WRONG:
            return ConfigError("finding", shown, f"the server refused the request: {reason}")
        if reply.status == 409:
            return StoreFull(shown, reason)
        if reply.status == 401:
            self._exchange.key_refused(reply.status)
        elif reply.status == 403 and not self._said_forbidden:
            self._said_forbidden = True
            text = "%s refuses codebase memory with %s (%s; logged once)"
            logger.warning(text, shown, self._exchange.address.shown_key, reason)
        elif reply.status in ABSENT and absent:
            reason = f"{absent} ({reason})"
        return Unavailable(BACKEND, reason, retry_after=reply.retry_after)


def _wrong(exc: ValidationError | ConfigError) -> str:
    """Return the field and the rule that it breaks, without its value."""
    if isinstance(exc, ConfigError):
        return f"{exc.name}: {exc.rule}"
    first = exc.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"


def _place(codebase: Codebase) -> str:
    """Return the path of a codebase. Clients and proxies resolve segments "." and ".." that are not encoded."""
    name = quote(codebase.codebase_id, safe="")
    return f"/findings/{name.replace('.', '%2E') if name in ('.', '..') else name}"


def _body(finding: Finding) -> dict[str, JSON]:
    """Return a finding as it is sent, without the fields that the server computes and those that are empty."""
    body: dict[str, JSON] = {
        "content": finding.content,
        "file_path": finding.file_path,
        "finding_type": finding.finding_type,
        "metadata": finding.metadata,
        "file_hash": finding.file_hash,
        "git_blob": finding.git_blob,
    }
    return {name: value for name, value in body.items() if value}


def _batches(bodies: Iterable[str]) -> Iterator[list[str]]:
    """Yield the findings of each request."""
    batch: list[str] = []
    size = 0
    for body in bodies:
        length = len(body.encode()) + 1
        if batch and (len(batch) == MOST_STORED or size + length > BODY_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += length
    if batch:
        yield batch


def _knows_no_list(reply: Reply) -> bool:
    """Return True if a server refused a list of findings because it takes one finding per request.

    Such a server misses the field "content"; one that takes lists names a field within "findings".
    """
    if reply.status not in (400, 422):
        return False
    try:
        detail = reply.json("the server").get("detail")
    except BadAnswer:
        return False
    if isinstance(detail, list):  # FastAPI's own form
        places = [one.get("loc") for one in detail if isinstance(one, dict)]
        return not any(isinstance(place, list) and "findings" in place for place in places)
    return isinstance(detail, str) and not detail.startswith("findings")


def _partly(exc: Exception, stored: int, given: int) -> Unavailable | StoreError:
    """Return the error for findings of which the first requests stored some."""
    part = f"{stored} of {given} findings are stored"
    if isinstance(exc, Unavailable):
        return Unavailable(exc.backend, f"{exc.reason}; {part}", retry_after=exc.retry_after)
    return StoreError(exc.store if isinstance(exc, StoreError) else BACKEND, f"{part}, then: {exc}")
