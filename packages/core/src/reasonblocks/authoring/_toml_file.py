"""A TOML file of `[[pattern]]` tables: what it holds, and on which line each of them begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from .._toml import TOMLDecodeError, loads
from ..exceptions import ConfigError, RecordError

__all__ = ["TOML_BYTES", "Table", "read_tables"]

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
