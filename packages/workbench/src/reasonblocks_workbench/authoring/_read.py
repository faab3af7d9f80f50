"""Reads pattern files, TOML or JSON Lines, and reports every fault with its line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.patterns import pattern_of
from reasonblocks.types import Pattern
from reasonblocks.util.files import TOMLDecodeError, loads, regular
from reasonblocks.util.text import preview

from ..traces import read_records

TOML_BYTES = 4 * 1024 * 1024
"""The largest TOML file: the parser takes some 200 ms a megabyte."""
KEY = "pattern"
_HEAD = re.compile(rf"^[ \t]*\[\[[ \t]*(?:{KEY}|'{KEY}'|\"{KEY}\")[ \t]*\]\]", re.MULTILINE)
_AT_LINE = re.compile(r"at line (\d+), column (\d+)")

Table: TypeAlias = "tuple[int | None, Any]"
"""A line number and an unvalidated value."""


def read_tables(path: str, data: bytes) -> Iterator[Table | RecordError]:
    """Yield each pattern's line and value, or an error in its place."""
    if b"\0" in data:
        yield RecordError(path, None, "is binary data, not TOML")
        return
    try:
        text = data.decode("utf-8-sig")
        parsed = loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield RecordError(path, line, f"is not UTF-8 text: byte {error.start + 1} of the file")
    except TOMLDecodeError as error:
        yield _no_toml(path, str(error))
    except (ValueError, RecursionError) as error:  # an impossible date, a thousand brackets
        yield RecordError(path, None, f"is TOML beyond our limits: {error}")
    else:
        yield from _tables(path, text, parsed)


def _no_toml(path: str, message: str) -> RecordError:
    place = _AT_LINE.search(message)
    reason = message.replace(f" ({place[0]})", f" at character {place[2]}") if place else message
    return RecordError(path, int(place[1]) if place else None, f"is not TOML: {reason}")


def _tables(path: str, text: str, parsed: dict[str, Any]) -> Iterator[Table | RecordError]:
    for key in parsed:
        if key != KEY:
            yield RecordError(path, _line_of(text, key), str(ConfigError.unknown("key", key, [KEY])))
    tables = parsed.get(KEY, [])
    if not isinstance(tables, list):
        yield RecordError(path, _line_of(text, KEY), "write [[pattern]] with two brackets: a file holds several")
        return
    if not tables and len(parsed) == (KEY in parsed):
        yield RecordError(path, None, "holds no [[pattern]]")
    yield from zip(_lines(text, len(tables)), tables, strict=True)


def _lines(text: str, count: int) -> Sequence[int | None]:
    """Return the line on which each table begins; all None if a text in the file looks like such a line as well."""
    found = [text.count("\n", 0, head.end()) + 1 for head in _HEAD.finditer(text)]
    return found if len(found) == count else [None] * count


def _line_of(text: str, key: str) -> int | None:
    found = re.search(rf"^[ \t\[]*[\"']?{re.escape(key)}[\"']?[ \t]*[=\].]", text, re.MULTILINE)
    return text.count("\n", 0, found.end()) + 1 if found else None


LINE_BYTES = 1024 * 1024
"""The longest line of JSON: a pattern of 32 exemplars of full length takes half of it."""
MAX_PATTERNS = 100_000
"""Patterns of one file: five times what a local store is made for."""
REASON_CHARS = 300
"""Characters of an error's reason, which may quote a value of any length."""
ID_CHARS = 60
"""Characters of an id that a reason shows."""
_JSON_SUFFIX = re.compile(r"\.(?:jsonl|ndjson|json)(?:\.gz)?$", re.IGNORECASE)
_JSON_START = re.compile(rb"\s*(?:\{|\[\s*[{\]]|\x1f\x8b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Authored:
    """A pattern of a file with the line on which it begins, from 1; None if the line is unknown."""

    line: int | None
    pattern: Pattern


def read_patterns(path: str | os.PathLike[str]) -> Iterator[Authored | RecordError]:
    """Yield every pattern of a JSON Lines or TOML file in order, with an error in place of each invalid one.

    A missing file or another format yields one error. A duplicate id yields an error where it is repeated.
    """
    name = os.fspath(path)
    seen: dict[str, int | None] = {}
    count = -1
    for count, item in enumerate(_values(name)):
        if count == MAX_PATTERNS:
            yield RecordError(name, None, f"holds more than {MAX_PATTERNS:,} patterns: split the file")
            return
        yield item if isinstance(item, RecordError) else _unless_repeated(name, seen, _authored(name, *item))
    if count < 0:  # an empty list
        yield RecordError(name, None, "holds no pattern")


def pattern_from(given: object) -> Pattern:
    """Return the pattern of a parsed object. Raises `ConfigError` with the field, its value and the rule."""
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
        return RecordError(path, line, _named(value) + preview(str(error), REASON_CHARS))
    except RecursionError:
        return RecordError(path, line, "is nested beyond our limits")


def _named(value: object) -> str:
    """Return a prefix with the pattern's id, which the error itself does not name; "" without an id."""
    name = value.get("id") if isinstance(value, Mapping) else None
    return f"{preview(name, ID_CHARS)}: " if isinstance(name, str) and name else ""


def _unless_repeated(
    path: str, seen: dict[str, int | None], authored: Authored | RecordError
) -> Authored | RecordError:
    """Return the pattern, or an error if its id occurred before."""
    if isinstance(authored, RecordError):
        return authored
    name = authored.pattern.id
    if name in seen:
        where = f" on line {seen[name]}" if seen[name] != authored.line else ""
        return RecordError(path, authored.line, f"{preview(name, ID_CHARS)}: this id was there before{where}")
    seen[name] = authored.line
    return authored


def _values(path: str) -> Iterator[Table | RecordError]:
    try:
        is_json = _is_json_file(path)
    except OSError:
        is_json = False  # the TOML reader reports the error, and does not wait for a pipe
    yield from _json_values(path) if is_json else _toml_values(path)


def _is_json_file(path: str) -> bool:
    """Decide by the file's name, otherwise by its first bytes."""
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
