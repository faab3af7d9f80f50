"""Which API a path belongs to, and how each one says that something went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from .._script import Turn
from . import _chat, _messages, _responses
from ._asked import ApiName, Asked, Item, Json, NewId

PATHS: Mapping[str, ApiName] = {
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
    "/v1/messages": "messages",
}
COUNT_TOKENS = "/v1/messages/count_tokens"
ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Api(Protocol):
    """One of the modules that know an API."""

    def items(self, body: Json) -> Iterator[Item]: ...
    def whole(self, asked: Asked, turn: Turn, new_id: NewId) -> Json: ...
    def events(self, answer: Json, asked: Asked, /) -> Iterator[bytes]: ...


APIS: Mapping[ApiName, Api] = {"responses": _responses, "chat": _chat, "messages": _messages}


def error_body(path: str, message: str, status: int, code: str | None) -> Json:
    kind = ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
