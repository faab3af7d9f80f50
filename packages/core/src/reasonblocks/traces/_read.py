"""Chooses the reader of a file: the first that recognises one of its first records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ..exceptions import RecordError
from ..types import JSON
from ._files import UNPACKED_BYTES, Progress, Record, read_records
from ._langchain import LangChainMessages
from ._ours import OurJSONL
from ._run import Reader, RecordedRun

READERS: tuple[Reader, ...] = (OurJSONL(), LangChainMessages())
HEAD_RECORDS = 8
"""The number of first records that may be unknown to every reader."""


def read_runs(
    path: str,
    *,
    readers: Sequence[Reader] = READERS,
    progress: Progress | None = None,
    unpacked: int = UNPACKED_BYTES,
) -> Iterator[RecordedRun | RecordError]:
    """Yield the runs of a file in order, one in memory at a time; an error takes the place of a malformed one.

    Never raises for the content of the file, or for a missing file. `progress` is called with the number of bytes read
    so far. At most `unpacked` bytes of a packed file's content are read.
    """
    records = read_records(path, progress, unpacked=unpacked)
    head: list[Record | RecordError] = []
    for record in records:
        head.append(record)
        reader = _reader(readers, record) if isinstance(record, Record) else None
        if reader is not None:
            yield from reader.read(path, chain(head, records))
            return
        if len(head) == HEAD_RECORDS:
            break
    yield from _unknown(path, readers, head)


def _reader(readers: Sequence[Reader], record: Record) -> Reader | None:
    return next((reader for reader in readers if reader.sniff(record.value)), None)


def _unknown(path: str, readers: Sequence[Reader], head: list[Record | RecordError]) -> Iterator[RecordError]:
    """Yield the errors of a file without a known record; records of unknown formats share one error."""
    first = next((record for record in head if isinstance(record, Record)), None)
    if first is None:
        yield from (record for record in head if isinstance(record, RecordError))
        return
    known = ", ".join(reader.name for reader in readers)
    yield RecordError(path, None, f"holds no recorded run: {_described(first.value)}; known formats: {known}")


def _described(value: JSON) -> str:
    if isinstance(value, dict):
        keys = ", ".join(repr(key) for key in list(value)[:6])
        return f"an object with the keys {keys}" if keys else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else repr(value)
