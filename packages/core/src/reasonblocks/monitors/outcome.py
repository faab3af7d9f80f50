"""What the result of a call says: an error, that it is still waiting; and hashes that tell results apart."""

from __future__ import annotations

import re
from zlib import crc32

from ..text import clip

__all__ = ["error_digest", "hash_of", "result_digest", "says_error", "says_nothing", "says_passing", "says_waiting"]

HEAD = 300
"""Characters from the start of a result within which an error announces itself."""
SHORT = 400
"""A result longer than this, in characters, is content: never a mere "still running" or "nothing found"."""

_STARTS = re.compile(
    r"[\W_]*(?:[^\W_]+[ _]){0,2}[^\W_]*(?:errors?|exceptions?|traceback|fatal|panic)(?:[_ ]?(?:message|code|type))?\b"
)
_STARTS_FAILED = re.compile(r"\W*(?:failed to|cannot|can't|could not|unable to|invalid |unknown |execution failed)")
_DENIED = re.compile(
    r"[\s\"':=-]*(?:(?:0|none|null|nil|false|free|handl\w+|logs?)\b|no\W*(?:errors?\b|$)|\[\]|\{\}|\"\")"
)
_DENIED_BEFORE = re.compile(r"\W*(?:\w+ )?(?:no|0|without|zero|not)[ _]")
_PHRASES = (
    "command not found",
    "no such file or directory",
    "permission denied",
    "is not recognized as",
    "modulenotfounderror:",
    "importerror:",
    "attributeerror:",
    "syntaxerror:",
    "typeerror:",
    "valueerror:",
    "keyerror:",
    "indexerror:",
    "nameerror:",
    "runtimeerror:",
)
_TRACEBACK = "Traceback (most recent call last)"
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::|$).*", re.MULTILINE)
_MASKED = re.compile(r"0x[0-9a-f]+|(?:[\w.~-]*/)+[\w.-]*|\d+")
_VOLATILE = re.compile(
    r"\d(?<!\w\d)(?:\d*(?:[.,]\d+)?\s?(?:s|ms|µs|us|ns|sec|secs|seconds?|min|minutes?)\b"
    r"|(?:\d{3}-\d\d-\d\d[T ]\d)?\d:\d\d:\d\d(?:[.,]\d+)?Z?\b|(?<=0)x[0-9a-f]{6,}\b)"
)
"""What differs between two equal results: "in 0.03s", "12:03:59", "at 0x7f3a12ff". It starts with a digit and
looks back from there, so that it is tried at digits only."""
_WAITING_MARKS = tuple(
    "running pending queued progress processing waiting ready finished complete still scheduled starting provisioning "
    "building deploying".split()
)
"""One of these is in every text that the next pattern matches: most results never meet it."""
_WAITING = re.compile(
    r"\b(?:running|pending|queued|in[ _-]progress|processing|waiting|not (?:yet )?(?:ready|finished|complete)|"
    r"still|scheduled|starting|provisioning|building|deploying)\b",
    re.IGNORECASE,
)

_NOTHING = re.compile(
    r"[\W_]*(?:(?:none|null|nil|empty(?: set| list| result)?)|(?:there (?:are|is|were|was) )?(?:no|0|zero)\b"
    r"(?! (?:errors?|exceptions?|problems?|issues?|failures?|warnings?)\b)(?:[ \w'-]{0,40}?)"
    r"\b(?:results?|match(?:es)?|rows?|records?|hits?|items?|entries|files?|data|documents?|output)\b.{0,60}"
    r"|nothing (?:was )?found.{0,40}"
    r"|(?:could )?not (?:be )?f(?:ou|i)nd\b.{0,300}|\w+[ :=]+\[\])?[\W_]*",
    re.IGNORECASE | re.DOTALL,
)
_PASSING = re.compile(
    r"\b(?:time[d]?[ -]?out|timeout|temporar(?:y|ily)|try again|retry|rate[ -]?limit\w*|too many requests|429|50[234]"
    r"|connection (?:reset|refused|aborted|error|closed|lost)|connectionerror|econnreset|etimedout"
    r"|unavailable|overloaded"
    r"|network (?:is )?(?:error|unreachable)|deadlock|locked)\b",
    re.IGNORECASE,
)
PASSING_HEAD = 1_000
"""Characters of an error within which it may say that it will pass."""


def hash_of(text: str) -> int:
    """A short hash of a text that is bounded already."""
    return crc32(text.encode("utf-8", "replace"))


def result_digest(text: str) -> int:
    """A short hash of the first and last 8,000 characters of a result, durations, clocks and addresses masked."""
    return crc32(_VOLATILE.sub("#", clip(text).strip()).encode("utf-8", "replace"))


def says_error(text: str) -> bool:
    """Does a result announce an error: at its start, or by a traceback? "0 errors" and "no exception" do not."""
    head = text[:HEAD].lower()
    if any(phrase in head for phrase in _PHRASES) or _STARTS_FAILED.match(head) or _TRACEBACK in text:
        return True
    start = _STARTS.match(head)
    return start is not None and not (_DENIED.match(head, start.end()) or _DENIED_BEFORE.match(head))


def error_digest(text: str) -> int:
    """A hash of what the error says, numbers and paths masked: the raised line of a traceback, else the start."""
    raised = _RAISED.findall(text) if _TRACEBACK in text else []
    said = (raised[-1] if raised else text.strip())[:HEAD]
    return hash_of(_MASKED.sub("#", " ".join(said.lower().split())))


def says_waiting(text: str) -> bool:
    """Is a short result a progress report, so that asking again is the right thing to do?"""
    if len(text) > SHORT or not any(map(text.lower().__contains__, _WAITING_MARKS)):
        return False
    return _WAITING.search(text) is not None


def says_nothing(text: str) -> bool:
    """Is this all that there was to find: "[]", "No results", "0 rows", or not a word?"""
    return len(text) <= SHORT and _NOTHING.fullmatch(text) is not None


def says_passing(error: str) -> bool:
    """May the same call be right a moment later: a timeout, a lost connection, a limit?"""
    return _PASSING.search(error[:PASSING_HEAD]) is not None
