"""Reads the result of a call (is it an error, empty, still running?), and hashes calls, results and errors.

Most patterns here are guarded: a few plain substring searches, one of which is in every text that the pattern matches,
run first, so that most results never meet the pattern. tests/core/test_shortcuts.py compares both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from zlib import crc32

from ..util.text import clip


class AnyCase:
    """A pattern in lower case that is searched for in any case.

    ASCII text is put into lower case first: searching that takes a third of the time of `re.IGNORECASE`. Text without
    any of the `marks`, one of which is in every match, is not searched at all.
    """

    __slots__ = ("_any", "_lower", "_marks")

    def __init__(self, pattern: str, marks: Iterable[str] = ("",), flags: int = 0) -> None:
        self._lower, self._any = re.compile(pattern, flags), re.compile(pattern, flags | re.IGNORECASE)
        self._marks = tuple(marks)

    def found(self, text: str) -> bool:
        """Return True if the pattern is anywhere in the text."""
        if not text.isascii():
            return self._any.search(text) is not None
        lower = text.lower()
        return any(map(lower.__contains__, self._marks)) and self._lower.search(lower) is not None


HEAD = 300
"""Characters at the start of a result in which an error is announced."""
AFTER_RAISED = 300
"""Characters of output after the last line of a traceback, up to which it is what the call ended with."""
KIND_WORDS = 4
"""Words at the start of an error that identify its kind."""
SHORT = 400
"""A result longer than this, in characters, is content: never only "still running" or "nothing found"."""

_STARTS = re.compile(
    r"[\W_]*(?:[^\W_]+[ _]){0,2}[^\W_]*(?:errors?|exceptions?|traceback|fatal|panic)(?:[_ ]?(?:message|code|type))?\b"
)
_ANNOUNCED = ("error", "exception", "traceback", "fatal", "panic")
"""Marks, one of which is in every head that `_STARTS` matches."""
_STARTS_FAILED = re.compile(
    r"(?:[\w./-]{1,40}: )?\W*(?:failed to|cannot|can't|could not|unable to|invalid |unknown |execution failed)"
)
_DENIED = re.compile(
    r"[\s\"':=-]*(?:(?:0|none|null|nil|false|free|handl\w+|logs?)\b|no\W*(?:errors?\b|$)|\[\]|\{\}|\"\")"
)
_DENIED_BEFORE = re.compile(r"\W*(?:\w+ )?(?:no|0|without|zero|not)[ _]")
_PHRASES = (
    "command not found",
    "no replacement was performed",
    "did not appear verbatim",
    "string to replace not found",
    "old_str not found",
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
_PROGRAM = re.compile(r"(?:[\w./-]+: )?[\w.-]+: [^\n]*: [A-Z][a-z]+ \w+")
"""The error message of a shell's program: its name, its subject, and the system's own words."""
_MASKED = re.compile(r"0x[0-9a-f]+|(?<![\w.~/-])(?:[\w.~-]*/)+[\w.-]*|\d+")
_VOLATILE = re.compile(
    r"\d(?<!\w\d)(?=[\d.,]{0,16}\s?[smunµ:x-])(?:\d*(?:[.,]\d+)?\s?(?:s|ms|µs|us|ns|sec|secs|seconds?|min|minutes?)\b"
    r"|(?:\d{3}-\d\d-\d\d[T ]\d)?\d:\d\d:\d\d(?:[.,]\d+)?Z?\b|(?<=0)x[0-9a-f]{6,}\b)"
)
"""The parts in which two equal results differ: "in 0.03s", "12:03:59", "at 0x7f3a12ff". The pattern starts with a digit
and looks back from there, so that it is tried at digits only, and ahead for the unit, since few digits have one."""
_IDS = re.compile(
    r"[0-9a-f](?<!\w.)(?:[0-9a-f]{7,}(?:-[0-9a-f]{4,})*|\d{3}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?"
    r"(?:Z|[+-]\d\d:?\d\d)?|\d?:\d\d(?::\d\d)?|\d{12})\b"
    r"|t(?<!\w.)mp[._]?[A-Za-z0-9]{6,}\b|/(?:tmp|var/folders|var/tmp|dev/shm)/[\w./-]*"
)
"""The parts of a short answer that are new each time: request ids, time stamps, temporary paths."""
_FILES = re.compile(r"\[(?:audio|document|file|image|video) [^\]\n]+\]")
"""The names of pictures and files (`_formats.content`): the only part in which two pictures differ looks like an id."""
_CALL_IDS = re.compile(
    r"[0-9a-f](?<!\w.)[0-9a-f]{7,}(?:-[0-9a-f]{4,})*\b|t(?<!\w.)mp[._]?[A-Za-z0-9]{6,}\b"
    r"|/(?:tmp|var/folders|var/tmp|dev/shm)/[\w./-]*"
)
"""The parts of a call that are new each time; a call's dates and times are not among them, because they matter."""
_STAMPS = re.compile(
    r"\b(?:\w*time_?stamp|ts|now|nonce|(?:sent|requested|called|issued)_?(?:at|on)|(?:request|trace|correlation|idempotency"
    r"|client)_?(?:id|key))= [^;]*?(?= \w+= | ;|$)",
    re.IGNORECASE,
)
"""Arguments whose names promise a new value each time."""
_STAMP_ENDS = ("stamp= ", "ts= ", "now= ", "nonce= ", "at= ", "on= ", "id= ", "key= ")
"""Marks, one of which is in every ASCII text that `_STAMPS` matches, in lower case."""
_DIGIT = re.compile(r"\d")
CALL_HEAD = 1_000
"""Characters at the start of a call in which ids are masked: after that it is a text."""
SHORT_ANSWER = 1_000
"""Characters of the longest result in which ids are masked: in a longer one, content, they mean something."""
_WAITING_MARKS = tuple(
    "running pending queued progress processing waiting ready finished complete still scheduled starting provisioning "
    "building deploying".split()
)
"""Marks, one of which is in every text that `_WAITING` matches."""
_WAITING = AnyCase(
    r"\b(?:running|pending|queued|in[ _-]progress|processing|waiting|not (?:yet )?(?:ready|finished|complete)|"
    r"still|scheduled|starting|provisioning|building|deploying)\b"
)

_STATUS = re.compile(
    r"\b(?:status|state)\W{1,5}(?:running|pending|queued|in[ _-]progress|processing|waiting|starting)\b"
)

_NOTHING = re.compile(
    r"[\W_]*(?:(?:none|null|nil|empty(?: set| list| result)?)|(?:there (?:are|is|were|was) )?(?:no|0|zero)\b"
    r"(?! (?:errors?|exceptions?|problems?|issues?|failures?|warnings?)\b)(?:[ \w'-]{0,40}?)"
    r"\b(?:results?|match(?:es)?|rows?|records?|hits?|items?|entries|files?|data|documents?|output)\b.{0,60}"
    r"|nothing (?:was )?found.{0,40}"
    r"|(?:could )?not (?:be )?f(?:ou|i)nd\b.{0,300}|\w+[ :=]+\[\])?[\W_]*",
    re.IGNORECASE | re.DOTALL,
)
_PASSING = AnyCase(
    r"\b(?:timed?[ -]?out|temporar(?:y|ily)|try again|retry|rate[ -]?limit\w*|too many requests|429|50[234]"
    r"|connection (?:reset|refused|aborted|error|closed|lost)|connectionerror|econnreset|etimedout"
    r"|unavailable|overloaded"
    r"|network (?:is )?(?:error|unreachable)|deadlock|locked)\b",
    "timeo,timed,time o,time-o,temporar,try again,retry,ratel,rate l,rate-l,too many,429,502,503,504,connectione"
    ",connection ,econnreset,unavailable,overloaded,network ,deadlock,locked".split(","),
)
_RED = re.compile(
    r"^(?:FAIL|--- FAIL)\b|(?<!\b0 )\bFAILED\b(?! ?[=:] ?0)"
    r"|\b[1-9]\d* (?:tests? )?(?:failed|failures?|failing|errors?)\b"
    r"|(?<!expected )\b(?:failures|errors|failed)[=:] ?[1-9]|^test result: FAILED",
    re.MULTILINE,
)
_GREEN = AnyCase(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing|ok)\b|^(?:ok|pass|passed)\b|\bno (?:issues|errors|problems) found\b"
    r"|^all (?:checks|tests) passed|^test result: ok|^success\b",
    ("pass", "ok", " found", "success"),
    re.MULTILINE,
)
REFUSAL_HEAD = 200
"""Characters at the start of an editor's answer in which it refuses a change."""
_REFUSED = re.compile(
    r"\b(?:introduced (?:a )?(?:new )?syntax error|could not find|(?:found )?multiple (?:matches|occurrences|before)"
    r"|multiple \(\d+\)|is not unique|does not exist|(?:not|nothing) (?:been |was )?(?:applied|replaced|changed|edited)"
    r"|no (?:changes?|replacements?|edits?|matches) (?:was |were |have been )?(?:made|performed|applied|found)"
    r"|(?:edit|change|patch|hunk #?\d*)s? (?:was |were |has been |have been )?(?:rejected|refused|failed)"
    r"|(?:does|did) not (?:match|apply)|identical|(?:exactly|are) the same|usage:)",
)
_COUNTS = re.compile(r"\b\d+ (?:tests? )?(?:passed|failed)\b")
RED_TAIL = 1_500
"""Characters at the end of a test's result in which it reports the totals."""
_PASSING_MARKS = tuple(
    "time temporar again retry limit requests 429 50 connection econn etimed lock unavail overload network".split()
)
"""Non-ASCII text without any of these does not pass, even if `_PASSING` matches it."""
PASSING_HEAD = 1_000
"""Characters of an error in which a reason to retry is looked for."""


def hash_of(text: str) -> int:
    """Return a short hash of a text that is bounded already."""
    return crc32(text.encode("utf-8", "replace"))


def result_digest(text: str) -> int:
    """Return a short hash of a result's first and last 8,000 characters; durations, clocks and addresses are masked."""
    text = clip(text).strip()
    if not _DIGIT.search(text):
        return hash_of(text)  # everything that is masked contains a digit
    files = "".join(_FILES.findall(text)) if "[" in text else ""
    text = _VOLATILE.sub("#", text)
    return hash_of(files + (_IDS.sub("#", text) if len(text) <= SHORT_ANSWER and _DIGIT.search(text) else text))


def call_digest(text: str) -> int:
    """Return a short hash of calls and their arguments, with ids, time stamps and temporary paths masked."""
    head = text[:CALL_HEAD]
    if "=" in head and (not head.isascii() or any(map(head.lower().__contains__, _STAMP_ENDS))):
        head = _STAMPS.sub("#", head)
    return hash_of((_CALL_IDS.sub("#", head) if _DIGIT.search(head) or "tmp" in head else head) + text[CALL_HEAD:])


def says_error(text: str) -> bool:
    """Return True if a result announces an error, at its start or by a traceback; "0 errors" does not."""
    head = text[:HEAD].lower()
    if any(map(head.__contains__, _PHRASES)) or _STARTS_FAILED.match(head) or _ends_raised(text):
        return True
    start = _STARTS.match(head) if any(map(head.__contains__, _ANNOUNCED)) else None
    return start is not None and not (_DENIED.match(head, start.end()) or _DENIED_BEFORE.match(head))


def _ends_raised(text: str) -> bool:
    """Return True if a traceback is the end of the text, or nearly: one that output follows was dealt with."""
    last = text.rfind(_TRACEBACK)
    if last < 0:
        return False
    raised = _RAISED.search(text, last + len(_TRACEBACK))
    return raised is None or len(text) - raised.end() <= AFTER_RAISED


def error_digests(text: str) -> tuple[int, int]:
    """Return hashes of an error's message, of the whole and of its first four words, with numbers and paths masked.

    The message is the last raised line of a traceback, the last part of a program's message ("cp: /etc/app: Permission
    denied"), or else the start of the text.
    """
    raised = _RAISED.findall(text) if _TRACEBACK in text else []
    message = (raised[-1] if raised else text.strip())[:HEAD]
    if not raised and _PROGRAM.match(message):
        message = message.partition("\n")[0].rpartition(": ")[2]
    words = _MASKED.sub("#", message.lower()).split()
    return hash_of(" ".join(words)), hash_of(" ".join(words[:KIND_WORDS]))


def says_refused(text: str) -> bool:
    """Return True if an editor's answer means that it changed nothing."""
    return _REFUSED.search(text[:REFUSAL_HEAD].lower()) is not None


def says_waiting(text: str) -> bool:
    """Return True if a result is a progress report, so that asking again is right; a long one has to give a status."""
    if len(text) > SHORT:
        head = text[:HEAD].lower()
        return "stat" in head and _STATUS.search(head) is not None
    if not any(map(text.lower().__contains__, _WAITING_MARKS)):
        return False
    return _WAITING.found(text)


def says_nothing(text: str) -> bool:
    """Return True if a result means that nothing was found: "[]", "No results", "0 rows", or no word at all."""
    return len(text) <= SHORT and _NOTHING.fullmatch(text) is not None


def says_red(text: str) -> bool:
    """Return True if a test's result reports a failure, which is no error of the call, but no success either."""
    tail = text[-RED_TAIL:]
    if "FAIL" not in tail and not (("fail" in tail or "error" in tail) and _DIGIT.search(tail)):
        return False  # the pattern could not match
    return _RED.search(tail) is not None


def says_counts(text: str) -> bool:
    """Return True if a result has the totals of a test run, as some editors append them to a change."""
    tail = text[-RED_TAIL:]
    return ("passed" in tail or "failed" in tail) and _COUNTS.search(tail) is not None


def says_green(text: str) -> bool:
    """Return True if a test's result reports success: then it is right that it is the same after each change."""
    return _GREEN.found(text[-RED_TAIL:]) and not says_red(text)


def says_passing(error: str) -> bool:
    """Return True if the same call may succeed a moment later: after a timeout, a lost connection, or a limit."""
    lower = error[:PASSING_HEAD].lower()
    return (lower.isascii() or any(map(lower.__contains__, _PASSING_MARKS))) and _PASSING.found(lower)
