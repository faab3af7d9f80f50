"""Decides which lines of an MCP client are refused: the library leaves those that it cannot read without an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

LINE_BYTES = 4 * 1024 * 1024
"""The bytes from which on a line is refused. The longest note has some thousand characters."""
SHOWN = 60
"""Characters of a wrong value that an error repeats."""
TOO_LONG = JSONRPCError(
    jsonrpc="2.0",
    id=None,
    error=ErrorData(
        code=PARSE_ERROR, message=f"Parse error: a line must have less than {LINE_BYTES:,} bytes; send a shorter one"
    ),
)
"""The answer to a line of `LINE_BYTES` or more."""


def refusals(line: str) -> Sequence[JSONRPCError] | None:
    """Return None for a line that the library answers, else the errors that answer it in the library's place.

    Notifications, responses and blank lines get none, also if they are malformed.
    """
    if not line.strip():
        return ()
    broken = _unparsed(line)
    value = _read(line)
    reason = f"Parse error: {broken}" if broken else _wrong(value)
    if reason is None:
        return None
    error = ErrorData(code=PARSE_ERROR if broken else INVALID_REQUEST, message=reason)
    asked = value if isinstance(value, list) and value else [value]
    ids = dict.fromkeys(_id(each) for each in asked if not _is_silent(each))
    return [JSONRPCError(jsonrpc="2.0", id=each, error=error) for each in ids]


def _unparsed(line: str) -> str | None:
    """Return why the library's parser, which reads less than Python's, cannot read the line."""
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        return str(first["ctx"]["error"]) if first["type"] == "json_invalid" else None
    return None


def _read(line: str) -> Any:
    """Return the value of a line, whatever its texts and the lengths of its numbers; None if it is no JSON."""
    try:
        return json.loads(line, parse_int=_whole)
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int | None:
    """Return the number, None for one with more digits than Python converts."""
    try:
        return int(digits)
    except ValueError:
        return None


def _wrong(message: Any) -> str | None:
    """Return why a message is invalid, None for one that the library reads as it is meant."""
    rule = None
    if isinstance(message, list):
        rule = "batches are not supported; send each message on a line of its own"
    elif not isinstance(message, dict):
        rule = f"a message must be a JSON object, not {_shown(message)}"
    elif message.get("jsonrpc") != "2.0":
        rule = f'jsonrpc must be "2.0", not {_shown(message.get("jsonrpc"))}'
    elif "id" in message and _id(message) is None:
        rule = f"id must be a string or a whole number, not {_shown(message['id'])}"
    elif "method" not in message:
        rule = None if _is_silent(message) else "method is missing"
    elif not isinstance(message["method"], str):
        rule = f"method must be a string, not {_shown(message['method'])}"
    elif not isinstance(message.get("params"), dict | None):
        rule = f"params must be a JSON object, not {_shown(message['params'])}"
    return rule and f"Invalid request: {rule}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _id(message: Any) -> RequestId | None:
    """Return the id of a request, None if it has none that an answer can repeat."""
    found = message.get("id") if isinstance(message, dict) else None
    if isinstance(found, str):
        return found if found.isascii() or found == found.encode("utf-8", "replace").decode() else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _is_silent(message: Any) -> bool:
    """Return True for a notification or a response, to which no one waits for an answer."""
    if not isinstance(message, dict):
        return False
    if "method" in message:
        return "id" not in message and isinstance(message["method"], str)
    return "result" in message or "error" in message
