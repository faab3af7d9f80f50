"""Chooses the reader of a file: the one named, or the only one that recognises the file or one of its first records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.types import JSON

from ._agents import Codex, MiniSwe, OtherMessages, Pi
from ._anthropic import AnthropicMessages
from ._atif import Atif
from ._claude_code import ClaudeCode
from ._files import UNPACKED_BYTES, Progress, Record, files_in, read_records
from ._installed import AnyReader, offered_readers
from ._langchain import LangChainMessages
from ._langfuse import LangfuseCsv, LangfuseObservations
from ._langsmith import LangSmithRuns
from ._logs import JsonlLog, Logs, is_event, logs_of
from ._openai_chat import OpenAIChat
from ._openai_responses import OpenAIResponses
from ._otlp import OtlpSpans
from ._ours import OurJSONL
from ._run import FileReader, Reader, Runs
from ._sqlite import SQLiteLog, is_sqlite, sqlite_logs

READERS: tuple[AnyReader, ...] = (
    OurJSONL(),
    JsonlLog(),
    SQLiteLog(),
    Atif(),
    OtlpSpans(),
    LangSmithRuns(),
    LangfuseObservations(),
    LangfuseCsv(),
    LangChainMessages(),
    OpenAIChat(),
    OpenAIResponses(),
    AnthropicMessages(),
    OtherMessages("ai-sdk", "messages of Vercel's AI SDK"),
    OtherMessages("bedrock", "messages of Bedrock's Converse"),
    ClaudeCode(),
    Codex(),
    Pi(),
    MiniSwe(),
)
"""The readers of this library."""
HEAD_RECORDS = 8
"""The number of first records that may be unknown to every reader."""
HEAD_BYTES = 4096
"""The number of first bytes by which a file that is not JSON is recognised."""


def read_runs(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    readers: Sequence[AnyReader] | None = None,
    progress: Progress | None = None,
    unpacked: int = UNPACKED_BYTES,
) -> Runs:
    """Yield the runs of a file in order, one in memory at a time; an error takes the place of a malformed one.

    Those of a folder are the runs of all files in it; a file without a known format is an error.

    `format` is the name of the reader; without it, the file's content decides. The readers are those of
    `installed_readers`, unless `readers` replaces them. Raises `ConfigError` for an unknown format, and nothing for the
    content of the file, or for a missing file. `progress` is called with the number of bytes read so far. At most
    `unpacked` bytes of a packed file's content are read.
    """
    known = installed_readers() if readers is None else readers
    named = None if format is None else _named(format, known)
    asked = [named] if named else known
    if os.path.isdir(path):
        return _of_folder(os.fspath(path), partial(_runs, readers=asked, named=named, unpacked=unpacked), progress)
    return _runs(os.fspath(path), asked, named, progress, unpacked)


def _of_folder(path: str, read: Callable[..., Runs], progress: Progress | None) -> Runs:
    """Read the files one after another; `progress` counts the bytes of all."""
    before, is_empty = 0, True
    for file in files_in(path):
        yield from read(file, progress=partial(_progress, progress, before) if progress else None)
        is_empty = False
        with suppress(OSError):  # it may have been deleted meanwhile
            before += os.path.getsize(file)
    if is_empty:
        yield RecordError(path, None, "is a folder without files")


def _progress(progress: Progress, before: int, at: int) -> None:
    progress(before + at)


def read_logs(
    path: str | os.PathLike[str], *, progress: Progress | None = None, unpacked: int = UNPACKED_BYTES
) -> Logs:
    """Yield the runs of a file that `JsonlSink` (plain or gzip) or `SQLiteMonitorSink` wrote, with all their events.

    Otherwise like `read_runs`.
    """
    name = os.fspath(path)
    if is_sqlite(_head(name)):
        return sqlite_logs(name, progress)
    return _json_logs(name, read_records(name, progress, unpacked=unpacked))


def _json_logs(path: str, records: Iterator[Record | RecordError]) -> Logs:
    head: list[Record | RecordError] = []
    for record in records:
        head.append(record)
        if isinstance(record, Record) and is_event(record.value):
            yield from logs_of(path, chain(head, records))
            return
        if len(head) == HEAD_RECORDS:
            break
    yield from _unknown(path, [JsonlLog()], head)


def installed_readers() -> tuple[AnyReader, ...]:
    """Return the readers of this library and those that installed packages offer as `reasonblocks.readers`."""
    return (*READERS, *offered_readers([reader.name for reader in READERS]))


def _named(name: str, readers: Sequence[AnyReader]) -> AnyReader:
    found = {reader.name: reader for reader in readers}
    if name not in found:
        raise ConfigError.unknown("format", name, found)
    return found[name]


def _runs(
    path: str, readers: Sequence[AnyReader], named: AnyReader | None, progress: Progress | None, unpacked: int
) -> Runs:
    openers = [reader for reader in readers if isinstance(reader, FileReader) and (named or reader.opens(_head(path)))]
    if len(openers) > 1:
        yield _several(path, None, openers)
    elif openers:
        yield from openers[0].read_file(path, progress)
    else:
        yield from _of_records(path, readers, named, read_records(path, progress, unpacked=unpacked))


def _head(path: str) -> bytes:
    """Return the first bytes of a regular file; a pipe can be read only once."""
    with suppress(OSError):
        if Path(path).is_file():
            with open(path, "rb") as file:
                return file.read(HEAD_BYTES)
    return b""


def _of_records(
    path: str, readers: Sequence[AnyReader], named: AnyReader | None, records: Iterator[Record | RecordError]
) -> Runs:
    asked = [reader for reader in readers if isinstance(reader, Reader)]
    head: list[Record | RecordError] = []
    for record in records:
        head.append(record)
        claims = [reader for reader in asked if isinstance(record, Record) and (named or reader.sniff(record.value))]
        if len(claims) > 1:
            yield _several(path, record.line, claims)
            return
        if claims:
            yield from claims[0].read(path, chain(head, records))
            return
        if len(head) == HEAD_RECORDS:
            break
    yield from _unknown(path, readers, head)


def _several(path: str, line: int | None, claims: Sequence[AnyReader]) -> RecordError:
    names = ", ".join(reader.name for reader in claims)
    return RecordError(path, line, f"matches several formats ({names}); choose one, such as --format {claims[0].name}")


HELP = "docs/replay.md describes each format, and how to add your own"


def _unknown(path: str, readers: Sequence[AnyReader], head: list[Record | RecordError]) -> Iterator[RecordError]:
    """Yield the errors of a file without a known record; records of unknown formats share one error."""
    first = next((record for record in head if isinstance(record, Record)), None)
    if first is None:
        yield from (record for record in head if isinstance(record, RecordError))
        return
    near = "; ".join(f"{reader.name}: {lack}" for reader in readers if (lack := _lack(reader, first.value)))
    known = ", ".join(title_of(reader) for reader in readers)
    found = f"contains no recorded run: {_described(first.value)}"
    yield RecordError(path, None, f"{found}; {f'nearly {near}; ' if near else ''}tried: {known}; {HELP}")


def _lack(reader: AnyReader, value: JSON) -> str | None:
    lacks = getattr(reader, "lacks", None)
    return lacks(value) if lacks else None


def title_of(reader: AnyReader) -> str:
    """Return the name of a reader's format for people."""
    return str(getattr(reader, "title", reader.name))


def _described(value: JSON) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:6])
        return f"an object with the keys {keys}" if keys else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else repr(value)
