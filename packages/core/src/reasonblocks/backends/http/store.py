"""Searches the patterns of a server."""

from __future__ import annotations

from functools import partial

from ...ports import Retrieve
from ...types import ETrace
from ...wire import RetrieveResponse, retrieve_request
from ._connections import Ask
from ._exchange import Exchange
from .evaluator import JSON_BODY, read_answer, seconds_left
from .texts import Redaction, retrieve_with

BACKEND = "the pattern store"


class HttpStore:
    """Searches the patterns of a server: those of the key's org and those for everyone.

    `redaction` is applied to the texts of a query first.
    """

    inline = True
    """It keeps the deadline itself and blocks no event loop."""

    def __init__(self, exchange: Exchange, redaction: Redaction | None = None) -> None:
        self._exchange, self._redaction = exchange, redaction

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Ask the server until `request.ends`. Raises `Unavailable`, and `BadAnswer` for an unreadable answer."""
        self._exchange.check(BACKEND)
        sent = request
        if self._redaction is not None:
            sent = self._redaction.applied(partial(retrieve_with, request), seconds_left(request.ends))
        return self._found(self._exchange.ask(BACKEND, self._ask(sent), request.ends, self._read))

    async def asearch(self, request: Retrieve) -> tuple[ETrace, ...]:
        """Ask the server without blocking the event loop."""
        self._exchange.check(BACKEND)
        sent = request
        if self._redaction is not None:
            sent = await self._redaction.aapplied(partial(retrieve_with, request), seconds_left(request.ends))
        return self._found(await self._exchange.aask(BACKEND, self._ask(sent), request.ends, self._read))

    def close(self) -> None:
        self._exchange.close()

    @staticmethod
    def _ask(request: Retrieve) -> Ask:
        body = retrieve_request(request).model_dump_json(exclude_none=True)
        return Ask(path="/traces/retrieve", body=body.encode(), headers=JSON_BODY)

    def _read(self, body: bytes) -> RetrieveResponse:
        return read_answer(RetrieveResponse, self._exchange.address.shown, body)

    @staticmethod
    def _found(answer: RetrieveResponse) -> tuple[ETrace, ...]:
        return tuple([trace.trace() for trace in answer.traces])
