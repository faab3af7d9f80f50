"""A file as a stream of JSON values: plain or gzip, one value a line or one for the whole file, faults as values."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from itertools import chain
from typing import TypeAlias

from ..exceptions import RecordError
from ..types import JSON

__all__ = ["Progress", "Record", "mended", "read_records"]

LINE_BYTES = 256 * 1024 * 1024
"""Longest line that is read: the whole of it stands in memory, several times while it is parsed."""
SKIPPED_BYTES = 1024 * 1024
"""How much of a longer line is read at once, and dropped."""
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
HEAD_LINES = 8
"""How many first lines may hold no JSON before the file is taken for something else."""

Progress: TypeAlias = Callable[[int], None]
_Line: TypeAlias = "tuple[int, bytes]"
_half_pair = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One JSON object or list, and the line that it begins on, 1-based."""

    line: int
    value: JSON


def read_records(
    path: str, progress: Progress | None = None, *, longest: int = LINE_BYTES
) -> Iterator[Record | RecordError]:
    """Every JSON object or list of the file, in order; what cannot be read is an error in its place.

    `progress` is told, after each line, how many bytes of the file are read. A line of more than `longest` bytes is an
    error.
    """
    try:
        with open(path, "rb") as raw, _unpacked(raw) as stream:
            yield from _values(path, _lines(path, stream, raw, progress, longest))
    except OSError as error:
        yield RecordError(path, None, _os_reason(error))


def _unpacked(raw: BufferedReader) -> BufferedIOBase:
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP_MAGIC else raw


def _os_reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory; name the files in it"
    return f"cannot be read: {error.strerror or error}"


def _lines(
    path: str, stream: BufferedIOBase, raw: BufferedReader, progress: Progress | None, longest: int
) -> Iterator[_Line | RecordError]:
    """The lines that are not blank, each with its number. Damaged gzip data ends them with an error."""
    number = 0
    try:
        for number, line in enumerate(iter(lambda: stream.readline(longest + 1), b""), 1):
            if progress:
                progress(_position(raw))
            if number == 1 and (reason := _not_text(line)):
                yield RecordError(path, None, reason)
                return
            if len(line) > longest:
                yield RecordError(path, number, f"line longer than {longest:,} bytes")
                _skip_line(stream, line)
            elif not line.isspace():
                yield number, line
    except EOFError:
        yield RecordError(path, number + 1, "the gzip data ends too early; the file was cut short")
    except (gzip.BadGzipFile, zlib.error) as error:
        yield RecordError(path, number + 1, f"the gzip data is damaged: {error}")


def _skip_line(stream: BufferedIOBase, line: bytes) -> None:
    """To the end of the line that begins so."""
    while line and not line.endswith(b"\n"):
        line = stream.readline(SKIPPED_BYTES)


def _position(raw: BufferedReader) -> int:
    with suppress(OSError):  # a pipe has no position
        return raw.tell()
    return 0


def _values(path: str, lines: Iterator[_Line | RecordError]) -> Iterator[Record | RecordError]:
    """Decide by the first line: no text at all, one value for the whole file, or one a line."""
    first = next(lines, None)
    if first is None:
        yield RecordError(path, None, "the file is empty")
    elif _goes_on(value := _parsed(path, first), first):
        yield from _document(path, [first, *lines])
    else:
        yield from _json_lines(chain([value], (_parsed(path, line) for line in lines)))


def _not_text(line: bytes) -> str | None:
    if line.startswith(UTF16_MARKS):
        return "is UTF-16 text; save it as UTF-8"
    return "is binary data, not JSON" if b"\0" in line else None


def _goes_on(value: Record | RecordError, line: _Line | RecordError) -> bool:
    """Whether the first line is only the beginning of a value, as in a file that was written with an indent."""
    if isinstance(value, Record) or isinstance(line, RecordError):
        return False
    with suppress(ValueError, RecursionError):
        text = line[1].decode("utf-8-sig").rstrip()
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            return text.startswith(("{", "[")) and error.pos >= len(text)
    return False


def _document(path: str, lines: list[_Line | RecordError]) -> Iterator[Record | RecordError]:
    """The whole file as one value; where it is none, its lines may still be records."""
    whole = _joined(path, lines)
    if isinstance(whole, Record):
        yield whole
    else:
        yield from _json_lines((_parsed(path, line) for line in lines), instead=whole)


def _joined(path: str, lines: list[_Line | RecordError]) -> Record | RecordError:
    held = []
    for line in lines:
        if isinstance(line, RecordError):
            return line
        held.append(line)
    return _parsed(path, (held[0][0], b"".join(data for _, data in held)))


def _json_lines(
    values: Iterator[Record | RecordError], instead: RecordError | None = None
) -> Iterator[Record | RecordError]:
    """One value a line. When the head holds none, one error stands for the file: `instead`, or one that says so."""
    head: list[Record | RecordError] = []
    for value in values:
        head.append(value)
        if isinstance(value, Record) or len(head) == HEAD_LINES:
            break
    last = head[-1]
    if isinstance(last, Record):
        yield from chain(head, values)
    elif instead is not None:
        yield instead
    elif len(head) < HEAD_LINES:
        yield from head
    else:
        yield _none_of(head)


def _none_of(head: Iterable[Record | RecordError]) -> RecordError:
    first = next(value for value in head if isinstance(value, RecordError))
    return RecordError(
        first.file, None, f"the first {HEAD_LINES} lines hold no record; line {first.line}: {first.reason}"
    )


def _parsed(path: str, line: _Line | RecordError) -> Record | RecordError:
    if isinstance(line, RecordError):
        return line
    number, data = line
    try:
        value = json.loads(data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip())
        if _half_pair.search(data):
            value = mended(value)
    except UnicodeDecodeError as error:
        return RecordError(path, number, f"is not UTF-8 text: byte {error.start + 1} of the line")
    except json.JSONDecodeError as error:
        return RecordError(path, number + error.lineno - 1, f"is not JSON: {error.msg} at character {error.colno}")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        return RecordError(path, number, f"is JSON beyond our limits: {error}")
    if not isinstance(value, (dict, list)):
        return RecordError(path, number, f"is a JSON {type(value).__name__}, not an object or a list")
    return Record(line=number, value=value)


def mended(value: JSON) -> JSON:
    """Without halves of surrogate pairs, which no UTF-8 can hold: texts that were cut inside an emoji."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [mended(item) for item in value]
    if isinstance(value, dict):
        return {str(mended(key)): mended(item) for key, item in value.items()}
    return value
