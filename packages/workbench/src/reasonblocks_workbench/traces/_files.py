"""Reads a file, plain or gzip, as a stream of JSON values: one a line, or one for the whole file; faults are values."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase, BufferedReader, BytesIO
from itertools import chain
from typing import TypeAlias

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON
from reasonblocks.util.json import replace_surrogates

BLOCK = 256 * 1024
"""The number of bytes read at once."""
Line: TypeAlias = "tuple[int, bytes]"
"""The 1-based number of a line that is not blank, and its bytes."""
NEWLINE = ord("\n")
_blank = re.compile(rb"\s+")


class TooManyBytes(Exception):
    """The stream has more than `most` bytes; the lines before them were read."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(most)


def split(
    stream: BufferedIOBase,
    longest: int,
    *,
    number: int = 1,
    most: int | None = None,
    progress: Callable[[], None] | None = None,
) -> Iterator[Line]:
    """Yield the lines that are not blank, numbered from `number`; a longer one is cut to `longest` + 1 bytes.

    `progress` is called after each block. Raises `TooManyBytes` if the stream has more than `most` bytes.
    """
    line, total = bytearray(), 0
    while block := stream.read1(BLOCK):
        total += len(block)
        if progress:
            progress()
        if most is not None and total > most:
            raise TooManyBytes(most)
        at = 0
        while at < len(block):
            if not line and (passed := _blank_lines(block, at)):
                number += block.count(b"\n", at, passed)
                at = passed
                continue
            end = block.find(b"\n", at) + 1 or len(block)
            fits = len(line) <= longest
            line += block[at:end] if fits else b""
            at = end
            if fits and len(line) > longest:
                yield number, bytes(line[: longest + 1])
                del line[longest + 1 :]
            if block[end - 1] == NEWLINE:
                if len(line) <= longest and not line.isspace():
                    yield number, bytes(line)
                line.clear()
                number += 1
    if 0 < len(line) <= longest and not line.isspace():
        yield number, bytes(line)


def _blank_lines(block: bytes, at: int) -> int:
    """Return where the blank lines that begin at `at` end; 0 if there is none."""
    blank = _blank.match(block, at)
    return block.rfind(b"\n", at, blank.end()) + 1 if blank else 0


LINE_BYTES = 256 * 1024 * 1024
"""The longest line that is read: parsing holds it in memory several times."""
UNPACKED_BYTES = 1024 * 1024 * 1024
"""The limit of a packed file's content: a megabyte may unpack to a gigabyte. Other files have none."""
UNPACKED_VARIABLE = "REASONBLOCKS_UNPACKED_MB"
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
HEAD_LINES = 8
"""The number of first lines that may hold no JSON before the file is rejected."""

Progress: TypeAlias = Callable[[int], None]
_half_pair = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A JSON object or list, and its first line, 1-based."""

    line: int
    value: JSON


def read_records(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    longest: int = LINE_BYTES,
    unpacked: int = UNPACKED_BYTES,
) -> Iterator[Record | RecordError]:
    """Yield every JSON object or list of the file, in order; an error takes the place of an unreadable part.

    `progress` is called with the number of bytes read so far. A line of more than `longest` bytes is an error, and so
    is a packed file's content after `unpacked` bytes.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as raw, _unpacked(raw) as stream:
            report = partial(_report, raw, progress) if progress else None
            most = unpacked if stream is not raw else None
            yield from _values(
                name, _readable(name, split(stream, longest, most=most, progress=report), longest), longest
            )
    except OSError as error:
        yield RecordError(name, None, os_reason(error))


def files_in(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the path itself, or of a folder all files in it and in its folders, by name; hidden ones are left out.

    A folder that cannot be listed is yielded like a file, so that its reader reports why.
    """
    waiting = [os.fspath(path)]
    while waiting:
        at = waiting.pop()
        held = _listed(at)
        if held is None:
            yield at
        else:
            waiting += reversed(held)


def _listed(path: str) -> list[str] | None:
    """Return the files and folders in a folder, by name; None for anything else."""
    with suppress(OSError), os.scandir(path) as found:
        return sorted(entry.path for entry in found if not entry.name.startswith(".") and _is_read(entry))
    return None


def _is_read(entry: os.DirEntry[str]) -> bool:
    """Return False for a link to a folder, which may lead back, and for a pipe, which nobody may ever write to."""
    try:
        return entry.is_dir(follow_symlinks=False) or entry.is_file()
    except OSError:  # its reader reports it
        return True


def _unpacked(raw: BufferedReader) -> gzip.GzipFile | BufferedReader:
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP_MAGIC else raw


def os_reason(error: OSError) -> str:
    """Return why a file cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory; name the files in it"
    return f"cannot be read: {error.strerror or error}"


def _report(raw: BufferedReader, progress: Progress) -> None:
    with suppress(OSError):  # a pipe has no position
        progress(raw.tell())


def _readable(path: str, found: Iterator[Line], longest: int) -> Iterator[Line | RecordError]:
    """Yield the lines that are text; damaged gzip data ends them with an error."""
    number, first = 0, True
    try:
        for line in found:
            number, data = line
            if first and (reason := _not_text(data)):
                yield RecordError(path, None, reason)
                return
            yield line if len(data) <= longest else RecordError(path, number, f"line longer than {longest:,} bytes")
            first = False
    except TooManyBytes as error:
        megabytes = f"{error.most / 1024 / 1024:,.6g} MB"
        reason = f"unpacks to more than {megabytes}; the rest is not read: unpack it, or set {UNPACKED_VARIABLE}"
        yield RecordError(path, number + 1, reason)
    except EOFError:
        yield RecordError(path, number + 1, "the gzip data ends too early; the file was cut short")
    except (gzip.BadGzipFile, zlib.error) as error:
        yield RecordError(path, number + 1, f"the gzip data is damaged: {error}")


def _values(path: str, lines: Iterator[Line | RecordError], longest: int) -> Iterator[Record | RecordError]:
    """Decide by the first line: no text at all, one value for the whole file, or one a line."""
    first = next(lines, None)
    if first is None:
        yield RecordError(path, None, "the file is empty")
        return
    value = parsed(path, first)
    if not isinstance(first, RecordError) and _goes_on(value, first):
        yield from _document(path, first, lines, longest)
    else:
        yield from _json_lines(chain([value], (parsed(path, line) for line in lines)))


def _not_text(line: bytes) -> str | None:
    if line.startswith(UTF16_MARKS):
        return "is UTF-16 text; save it as UTF-8"
    return "is binary data, not JSON" if b"\0" in line else None


def _goes_on(value: Record | RecordError, line: Line) -> bool:
    """Return True if the first line is only the beginning of a value, as in an indented file."""
    if isinstance(value, Record):
        return False
    with suppress(ValueError, RecursionError):
        text = line[1].decode("utf-8-sig").rstrip()
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            return text.startswith(("{", "[")) and error.pos >= len(text)
    return False


def _document(
    path: str, first: Line, lines: Iterator[Line | RecordError], longest: int
) -> Iterator[Record | RecordError]:
    """Read the whole file as one value; if it is none, its lines may still be records."""
    start, text = first[0], bytearray(first[1])
    number, after = start, list[RecordError]()
    for line in lines:
        if isinstance(line, RecordError):
            after.append(line)
            break
        text += b"\n" * min(line[0] - number - 1, longest)  # blank lines, to keep the line numbers
        text += line[1]
        number = line[0]
        if len(text) > longest:
            after.append(RecordError(path, start, f"begins a value of more than {longest:,} bytes"))
            break
    whole = after[0] if after else parsed(path, (start, bytes(text)))
    if isinstance(whole, Record):
        yield whole
        return
    held = _readable(path, split(BytesIO(text), longest, number=start), longest)
    seen = after if after and after[0].line != start else []
    yield from _json_lines((parsed(path, line) for line in chain(held, seen, lines)), instead=whole)


def _json_lines(
    values: Iterator[Record | RecordError], instead: RecordError | None = None
) -> Iterator[Record | RecordError]:
    """Yield one value a line. If the head holds none, the file has one error: `instead`, or one that reports this."""
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


def parsed(path: str, line: Line | RecordError) -> Record | RecordError:
    """Return the object or list that a line holds."""
    if isinstance(line, RecordError):
        return line
    number, data = line
    try:
        value = json.loads(data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip())
        if _half_pair.search(data):
            value = replace_surrogates(value)
    except UnicodeDecodeError as error:
        return RecordError(path, number, f"is not UTF-8 text: byte {error.start + 1} of the line")
    except json.JSONDecodeError as error:
        return RecordError(path, number + error.lineno - 1, f"is not JSON: {error.msg} at character {error.colno}")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        return RecordError(path, number, f"is JSON beyond our limits: {error}")
    if not isinstance(value, (dict, list)):
        return RecordError(path, number, f"is a JSON {type(value).__name__}, not an object or a list")
    return Record(line=number, value=value)
