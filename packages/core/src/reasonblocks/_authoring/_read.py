"""Which patterns a file holds: each one with its line, each fault in its place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .._files import TOMLDecodeError, loads, regular
from .._patterns import pattern_of
from .._text import preview
from ..exceptions import ConfigError, RecordError
from ..traces import read_records
from ..types import Pattern

TOML_BYTES = 4 * 1024 * 1024
"""Of a whole file: the parser takes some 200 ms a megabyte."""
KEY = "pattern"
_HEAD = re.compile(rf"^[ \t]*\[\[[ \t]*(?:{KEY}|'{KEY}'|\"{KEY}\")[ \t]*\]\]", re.MULTILINE)
_AT_LINE = re.compile(r"at line (\d+), column (\d+)")

Table: TypeAlias = "tuple[int | None, Any]"
"""A line, and any value, not checked yet."""


def read_tables(path: str, data: bytes) -> Iterator[Table | RecordError]:
    """Each pattern's line and value, or why there is none."""
    if b"\0" in data:
        yield RecordError(path, None, "is binary data, not TOML")
        return
    try:
        text = data.decode("utf-8-sig")
        told = loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield RecordError(path, line, f"is not UTF-8 text: byte {error.start + 1} of the file")
    except TOMLDecodeError as error:
        yield _no_toml(path, str(error))
    except (ValueError, RecursionError) as error:  # a date that is none, a thousand brackets
        yield RecordError(path, None, f"is TOML beyond our limits: {error}")
    else:
        yield from _tables(path, text, told)


def _no_toml(path: str, message: str) -> RecordError:
    place = _AT_LINE.search(message)
    said = message.replace(f" ({place[0]})", f" at character {place[2]}") if place else message
    return RecordError(path, int(place[1]) if place else None, f"is not TOML: {said}")


def _tables(path: str, text: str, told: dict[str, Any]) -> Iterator[Table | RecordError]:
    for key in told:
        if key != KEY:
            yield RecordError(path, _line_of(text, key), str(ConfigError.unknown("key", key, [KEY])))
    given = told.get(KEY, [])
    if not isinstance(given, list):
        yield RecordError(path, _line_of(text, KEY), "write [[pattern]] with two brackets: a file holds several")
        return
    if not given and len(told) == (KEY in told):
        yield RecordError(path, None, "holds no [[pattern]]")
    yield from zip(_lines(text, len(given)), given, strict=True)


def _lines(text: str, count: int) -> Sequence[int | None]:
    """Where each table begins; None where a text within the file looks like such a line, too."""
    found = [text.count("\n", 0, head.end()) + 1 for head in _HEAD.finditer(text)]
    return found if len(found) == count else [None] * count


def _line_of(text: str, key: str) -> int | None:
    found = re.search(rf"^[ \t\[]*[\"']?{re.escape(key)}[\"']?[ \t]*[=\].]", text, re.MULTILINE)
    return text.count("\n", 0, found.end()) + 1 if found else None


LINE_BYTES = 1024 * 1024
"""Of one line of JSON: a pattern of 32 exemplars of full length takes half of it."""
MOST = 100_000
"""Patterns of one file, five times what a local store is made for."""
REASON = 300
"""Characters of a reason: the value that it quotes may be of any length."""
NAME = 60
"""Characters of an id that a reason shows."""
_JSON_SUFFIX = re.compile(r"\.(?:jsonl|ndjson|json)(?:\.gz)?$", re.IGNORECASE)
_JSON_START = re.compile(rb"\s*(?:\{|\[\s*[{\]]|\x1f\x8b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Authored:
    """A pattern of a file, and the line that it begins on, 1-based; None where that cannot be told."""

    line: int | None
    pattern: Pattern


def read_patterns(path: str | os.PathLike[str]) -> Iterator[Authored | RecordError]:
    """Every pattern of a JSON Lines or TOML file, in order; each one that cannot be used is an error in its place.

    What is no file, or neither of the two, is one error. An id that was there before is an error where it comes again.
    """
    name = os.fspath(path)
    seen: dict[str, int | None] = {}
    for count, one in enumerate(_values(name)):
        if count == MOST:
            yield RecordError(name, None, f"holds more than {MOST:,} patterns: split the file")
            return
        yield one if isinstance(one, RecordError) else _first(name, seen, _authored(name, *one))


def pattern_from(given: object) -> Pattern:
    """One pattern from parsed JSON or TOML. Raises `ConfigError` with the field, its value, and what holds."""
    if not isinstance(given, Mapping):
        raise ConfigError("pattern", given, "must be an object with id, tier and fields")
    pattern = pattern_of(given)
    counts: Iterable[object] = pattern.stats.values()
    if any(not isinstance(count, int) or isinstance(count, bool) or not 0 <= count < 2**63 for count in counts):
        raise ConfigError("pattern: stats", pattern.stats, "must be counts, whole numbers from 0 that fit into 63 bits")
    return pattern


def _authored(path: str, line: int | None, value: Any) -> Authored | RecordError:
    try:
        return Authored(line=line, pattern=pattern_from(value))
    except ConfigError as error:
        return RecordError(path, line, _named(value) + preview(str(error), REASON))
    except RecursionError:
        return RecordError(path, line, "is nested beyond our limits")


def _named(value: object) -> str:
    """The id, where the error does not name it."""
    name = value.get("id") if isinstance(value, Mapping) else None
    return f"{preview(name, NAME)}: " if isinstance(name, str) and name else ""


def _first(path: str, seen: dict[str, int | None], one: Authored | RecordError) -> Authored | RecordError:
    if isinstance(one, RecordError):
        return one
    name = one.pattern.id
    if name in seen:
        where = f" on line {seen[name]}" if seen[name] != one.line else ""
        return RecordError(path, one.line, f"{preview(name, NAME)}: this id was there before{where}")
    seen[name] = one.line
    return one


def _values(path: str) -> Iterator[Table | RecordError]:
    try:
        is_json = _is_json_file(path)
    except OSError:
        is_json = False  # the TOML reader reports the error, and does not wait for a pipe
    yield from _json_values(path) if is_json else _toml_values(path)


def _is_json_file(path: str) -> bool:
    """By its name, else by how it begins."""
    if _JSON_SUFFIX.search(path) or path.lower().endswith(".toml"):
        return not path.lower().endswith(".toml")
    regular(path)
    with open(path, "rb") as file:
        start = file.read(4096).removeprefix(b"\xef\xbb\xbf")
    return not start.strip() or bool(_JSON_START.match(start))


def _json_values(path: str) -> Iterator[Table | RecordError]:
    for record in read_records(path, longest=LINE_BYTES):
        if isinstance(record, RecordError):
            yield record
        elif isinstance(record.value, list):
            yield from ((record.line, value) for value in record.value)
        else:
            yield record.line, record.value


def _toml_values(path: str) -> Iterator[Table | RecordError]:
    try:
        regular(path)
        with open(path, "rb") as file:
            data = file.read(TOML_BYTES + 1)
    except FileNotFoundError:
        yield RecordError(path, None, "no such file")
    except IsADirectoryError:
        yield RecordError(path, None, "is a directory; name the files in it")
    except OSError as error:
        yield RecordError(path, None, f"cannot be read: {error.strerror or error}")
    else:
        if len(data) > TOML_BYTES:
            yield RecordError(path, None, f"is longer than {TOML_BYTES:,} bytes; write so many patterns as JSON Lines")
        elif not data.strip():
            yield RecordError(path, None, "the file is empty")
        else:
            yield from read_tables(path, data)
