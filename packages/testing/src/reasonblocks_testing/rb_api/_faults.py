"""Defines the faults that a scripted rb-api can have, and the bodies of its lies."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

Lie: TypeAlias = Literal[
    "html", "empty", "list", "truncated", "cut off", "deep", "huge", "bomb", "not gzip", "nan", "wrong types",
    "inject as text", "unknown fired", "scores above 1", "long text",
]  # fmt: skip
LIES: tuple[Lie, ...] = get_args(Lie)
HUGE_BYTES = 32 * 1024 * 1024
DEEP_LEVELS = 200_000
LONG_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """A fault that sends the answer after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip:
    """A fault that sends the answer one byte at a time, with `seconds` before each byte."""

    seconds: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """A fault that reads a request without an answer; the connection stays open until the fault or server ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangUp:
    """A fault that reads a request, and closes the connection without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A fault that answers a request, without handling it, with this HTTP status and reason."""

    code: int
    detail: str = "a scripted fault"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lying:
    """A fault that handles a request, and replaces the answer by a body that no client should accept.

    - "html", "empty", "list", "deep" (nested 200,000 levels), "huge" (32 MB): another body with the status 200.
    - "truncated": the first half of the answer. "cut off": the same, and the connection is closed before the length
      that the headers declare.
    - "bomb": 32 MB of spaces, gzipped to 32 KB. "not gzip": plain JSON that the headers call gzip.
    - "nan": every number is NaN. "wrong types": every value has another type. "inject as text": `inject` is "false",
      with a text. "unknown fired": a monitor without a score has fired. "scores above 1": every score is 7.
      "long text": a text of 100,000 characters.
    """

    lie: Lie


Fault: TypeAlias = Slow | Drip | Hang | HangUp | Status | Lying


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupted:
    """The body of a lie, its headers, and how many bytes more than the body the headers declare."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0


def corrupt(lie: Lie, body: bytes) -> Corrupted:
    """Return the lie in place of a true answer's body."""
    half = body[: len(body) // 2]
    if lie == "cut off":
        return Corrupted(body=half, missing=len(body) - len(half))
    if lie == "bomb":
        return Corrupted(body=gzip.compress(b" " * HUGE_BYTES), headers={"content-encoding": "gzip"})
    if lie == "not gzip":
        return Corrupted(body=body, headers={"content-encoding": "gzip"})
    if lie == "html":
        return Corrupted(body=b"<html><body>It works!</body></html>", headers={"content-type": "text/html"})
    plain: dict[Lie, bytes] = {"empty": b"", "list": b"[]", "truncated": half, "deep": b"[" * DEEP_LEVELS}
    if lie in plain:
        return Corrupted(body=plain[lie])
    if lie == "huge":
        return Corrupted(body=body[:-1] + b', "padding": "' + b"x" * HUGE_BYTES + b'"}')
    return Corrupted(body=json.dumps(_CHANGES[lie](json.loads(body))).encode())


def _numbers_as_nan(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _numbers_as_nan(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [_numbers_as_nan(value) for value in answer]
    return float("nan") if isinstance(answer, (int, float)) and not isinstance(answer, bool) else answer


def _wrong_types(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: 7 if isinstance(value, (str, list, dict)) else ["wrong"] for name, value in answer.items()}


def _long_text(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "inject": True, "intervention_text": "x" * LONG_CHARS, "injection_path": "monitor"}


def _scores_above_1(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "scores": dict.fromkeys(answer.get("scores", {}), 7.0), "composite": 7.0}


_CHANGES: Mapping[Lie, Callable[[dict[str, Any]], Any]] = {
    "nan": _numbers_as_nan,
    "wrong types": _wrong_types,
    "inject as text": lambda answer: {**answer, "inject": "false", "intervention_text": "Stop and read the error."},
    "unknown fired": lambda answer: {**answer, "fired": ["no_such_monitor"]},
    "scores above 1": _scores_above_1,
    "long text": _long_text,
}
