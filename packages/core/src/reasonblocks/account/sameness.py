"""Digests calls and results, so that two that differ only in times, ids and the like have the same digest."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from string import digits
from zlib import crc32

from ..types import JSON, ToolCall
from ..util.json import canonical

HEAD, TAIL = 2_400, 1_200
"""Characters at each end of a result that are masked; between them only the digits are left out."""
MIDDLE = 65_536
"""Characters of that middle part that are compared."""
BITS = 0xFFFFFF
"""The bits of a digest that are kept: of 32 digests, two are equal by chance once in 34,000 times."""
SHORTEST_VALUE, LONGEST_VALUE, MAX_VALUES = 3, 200, 12
"""Characters, and number, of the values of a call's arguments that are masked in its result."""
MOST_VALUES, LARGEST = 256, 1e300
"""Values of a call's arguments that are read; a larger number is not."""
LINES_HEAD = 1_000
"""Characters of a value of several lines of which each line is masked, too."""
LIST_LINES, LIST_LINE = 3, 200
"""Lines of the shortest list, and characters of its longest line."""
ASIDE = frozenset("description explanation thought reason reasoning justification comment summary toolsummary".split())
"""Arguments that describe a command for a reader, beside the one that is the command."""
COMMANDS = ("command", "cmd", "script", "code", "commands")
_STAMPED = re.compile(
    r"(?:time_?stamp|nonce|(?:idempotency|trace|correlation|request)_?(?:id|key)|(?:sent|requested|called|issued)_?at"
    r"|now|ts)$",
    re.IGNORECASE,
)
"""Names of arguments with a new value each time, if the value has the form of one."""
_STAMP = re.compile(r"[0-9a-f-]{12,}|\d{10,}|\d{4}-\d\d-\d\d[T ].*|\w*[0-9a-f]{12,}\w*", re.IGNORECASE)

_UNIT = r" ?(?:ms|milliseconds?|msecs?|[uµ]s|ns|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?|weeks?)"
_DIGITS_FIRST = re.compile(
    r"\d(?<![\w.]\d)(?:\d{3}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
    r"|\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[AaPp][Mm]\b)?"
    rf"|\d*(?:[.,]\d+)?{_UNIT}\b(?: ?\d+{_UNIT}\b)*"
    r"|x[0-9a-fA-F]+\b|[0-9a-f]*(?:(?<=[a-f])[0-9a-f]*\d|(?<=\d)[a-f])[0-9a-f]{4,}(?:-[0-9a-f]{4,})*\b"
    r"|\d{7}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\d{9,12}(?:\.\d+)?\b(?![-/]))"
)
"""Times, durations, addresses, hashes, ids and epochs that begin with a digit."""
_LETTERS_FIRST = re.compile(r"[a-f](?<!\w.)(?=[0-9a-f]*\d)[0-9a-f]{7,}(?:-[0-9a-f]{4,})*\b")
"""Hashes and ids that begin with a letter."""
_PATHS = re.compile(
    r"/(?:tmp|var/folders|var/tmp|dev/shm|private/tmp)/[^\s'\"`,;:)\]}>]*|\btmp[._]?(?=\w*\d)[A-Za-z0-9_]{6,}\b"
)
_PATH_MARKS = ("tmp", "/var/", "/dev/shm")
"""Marks, one of which is in every path that `_PATHS` matches; without them, most texts need no search for it."""
_PORTS = re.compile(r"(?<=localhost:)\d+|(?<=127\.0\.0\.1:)\d+|(?<=0\.0\.0\.0:)\d+|(?<=\[::1\]:)\d+|(?<=\[::\]:)\d+")
_HOSTS = ("localhost:", "127.0.0.1:", "0.0.0.0:", "[::1]:", "[::]:")
"""The marks before a port that `_PORTS` matches."""
_VALUE = re.compile(r"[:=#][\"']?\s{0,2}[\"'#]?(?=[\w.+-]{0,20}\d)[\w.:+/-]+")
"""A value with a digit, after the mark that separates it from its name."""
_NAMES = frozenset(
    "time times took elapsed duration latency uptime age timestamp ts date at ms sec secs second seconds millis us ns"
    " request pid ppid nonce etag token cursor seed hash checksum digest uuid guid port attempt try retry retries"
    " tries iteration seq sequence"
    " seqno revision generation expires traceid requestid".split()
)
"""Last words of a name that promises a new value each time."""
_OF_IDS = frozenset(
    "chunk request trace span correlation session process task job run call message event operation invocation"
    " response execution"
    " transaction cell container thread worker batch build log query object instance snapshot version".split()
)
"""Words before "id" in such a name."""
_OF_OTHERS = frozenset({("seq", "no"), ("resource", "version"), ("last", "modified"), ("expires", "in")})
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_BESIDE = re.compile(r"\d(?<=[A-Za-z] \d)[\w-]*|\d(?<=[A-Za-z] #\d)[\w-]*")
"""A number with only a blank after its name."""
_NAMED_BESIDE = re.compile(
    r"(?:\b|_)(?:attempt|try|retry|pid|port|took|iteration|id|request|session|process|job|token|seed) #?\Z",
    re.IGNORECASE,
)
_NAME_LENGTH = 28
_PICTURE = re.compile(r"\[(?:audio|document|file|image|video) [^\]\n]+\]")
_FRAGMENT = re.compile(
    r"'(?=[^'\n]*\s)[^'\n]{25,}(?:'|$)|\"(?=[^\"\n]*\s)[^\"\n]{25,}(?:\"|$)|`(?=[^`\n]*\s)[^`\n]{25,}(?:`|$)|near '.*"
)
"""A quoted part of the call in its error."""
_AT_LINE = re.compile(r"(?<=:)\d+(?=[:,)\s]|$)|(?<=line )\d+|(?<=\()\d+,\d+(?=\))")
_NUMBER = re.compile(r"(?<![A-Za-z_])\d+")
_SPACES = re.compile(r"[ \t]+")
_DIGITS = b"0123456789"


def hash_of(text: str) -> int:
    """Return a short hash of a text."""
    return crc32(text.encode("utf-8", "replace")) & BITS


def call_text(call: ToolCall) -> str:
    """Return a call and its arguments in one form, whatever the order of the keys; white space inside a text counts.

    What only describes a command, and a stamp that is new each time, do not count.
    """
    given = call.arguments
    if isinstance(given, Mapping) and len(given) > 1:
        described = any(name in given for name in COMMANDS)
        given = {
            name: value
            for name, value in given.items()
            if not (described and str(name).lower() in ASIDE) and not _is_stamp(str(name), value)
        }
    return f"{call.name} {canonical(given)}"


def _is_stamp(name: str, value: JSON) -> bool:
    return _STAMPED.search(name) is not None and _STAMP.fullmatch(str(value)[:LONGEST_VALUE]) is not None


def values_in(given: JSON) -> Iterator[str]:
    """Yield the texts and numbers among the first values in the arguments of a call."""
    left: deque[JSON] = deque([given])
    for _ in range(MOST_VALUES):
        if not left:
            return
        value = left.popleft()
        if isinstance(value, str):
            yield value
        elif isinstance(value, (int, float)):
            if not isinstance(value, bool) and -LARGEST < value < LARGEST:
                yield str(value)
        elif isinstance(value, (Mapping, list, tuple)):
            left.extend(islice(value.values() if isinstance(value, Mapping) else value, MOST_VALUES))


def mask_variables(text: str, values: Iterable[str] = ()) -> str:
    """Return a text without what differs from one call to the next: times, ids, and the call's own `values`."""
    pictures = "".join(_PICTURE.findall(text))
    for value in values:
        text = text.replace(value, "¤")
    if any(mark in text for mark in _PATH_MARKS):
        text = _PATHS.sub("#", text)
    if not any(digit in text for digit in digits):
        return pictures + text
    text = _VALUE.sub(_without_value, text)
    text = _BESIDE.sub(_without_number, text)
    if any(host in text for host in _HOSTS):
        text = _PORTS.sub("#", text)
    text = _LETTERS_FIRST.sub("#", _DIGITS_FIRST.sub("#", text))
    return pictures + text


def _without_value(found: re.Match[str]) -> str:
    start = found.start()
    name = found.string[max(0, start - _NAME_LENGTH) : start].rstrip("\"' ")
    return f"{found[0][0]}#" if name[-1:].isalpha() and _is_new_each_time(name) else found[0]


def _is_new_each_time(name: str) -> bool:
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    if words and words[-1] in _NAMES:
        return True
    return len(words) > 1 and ((words[-1] == "id" and words[-2] in _OF_IDS) or (words[-2], words[-1]) in _OF_OTHERS)


def _without_number(found: re.Match[str]) -> str:
    start = found.start()
    return "#" if _NAMED_BESIDE.search(found.string[max(0, start - _NAME_LENGTH) : start]) else found[0]


def own_values(given: JSON) -> list[str]:
    """Return the longer values in the arguments of a call, the longest first; of a text of several lines each line."""
    lines = (line for value in values_in(given) for line in [value, *value[:LINES_HEAD].split("\n")])
    found = {line for line in lines if SHORTEST_VALUE <= len(line) <= LONGEST_VALUE}
    return sorted(found, key=lambda value: (-len(value), value))[:MAX_VALUES]


def result_digest(text: str, values: Sequence[str] = (), *, listed: bool = False) -> int:
    """Return the digest of a result; of a list (`listed`) whatever the order of its lines."""
    text = text.strip()
    middle = 0
    if len(text) > HEAD + TAIL:
        rest = text[HEAD:-TAIL][:MIDDLE]
        middle = crc32(rest.encode("utf-8", "replace").translate(None, _DIGITS))
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    text = mask_variables(text, values)
    if "  " in text or "\t" in text:
        text = _SPACES.sub(" ", text)
    if listed and (lines := items_of(text)):
        return (sum(map(hash_of, lines)) ^ middle) & BITS
    return hash_of(text) ^ middle & BITS


def items_of(text: str) -> list[str]:
    """Return the lines of a list: at least three short ones, or none."""
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    if len(lines) < LIST_LINES or max(map(len, lines)) > LIST_LINE:
        return []
    return lines


def line_digest(line: str, values: Sequence[str] = ()) -> int:
    """Return the digest of a message line, numbers and the call's own `values` aside; 0 for none."""
    if not line:
        return 0
    return hash_of(_NUMBER.sub("#", _FRAGMENT.sub("'…'", mask_variables(line, values))).strip().lower()) or 1


def check_digest(line: str, values: Sequence[str] = ()) -> int:
    """Return the digest of a check's message line: other numbers than those of lines are news."""
    return (hash_of(_AT_LINE.sub("#", mask_variables(line, values)).strip()) or 1) if line else 0
