"""Finds the readers that installed packages offer, and contains their faults."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON
from reasonblocks.util.text import preview

from ._files import Progress, Record
from ._run import FileReader, Reader, Runs

AnyReader: TypeAlias = "Reader | FileReader"
READER_GROUP = "reasonblocks.readers"
"""The entry points by which a package offers a reader: an object, or a class that is called without arguments."""
FAULT_CHARS = 200


def offered_readers(taken: Collection[str]) -> tuple[AnyReader, ...]:
    """Return the readers that packages offer, by name; a broken one, or one with a name that is taken, is skipped.

    A warning gives the reason.
    """
    return _offered(tuple(sys.path), frozenset(taken))


@lru_cache(maxsize=1)  # reading the metadata of all packages takes long
def _offered(path: tuple[str, ...], taken: frozenset[str]) -> tuple[AnyReader, ...]:
    found: dict[str, AnyReader] = {}
    for point in sorted(entry_points(group=READER_GROUP), key=lambda point: point.name):
        try:
            reader = _loaded(point, taken | found.keys())
        except Exception as error:  # noqa: BLE001 - somebody else's code
            _warn(f"the reader {point.name!r} ({point.value}) is skipped: {_fault(error)}")
        else:
            found[reader.name] = reader
    return tuple(found.values())


def _loaded(point: EntryPoint, taken: Collection[str]) -> AnyReader:
    loaded: Any = point.load()
    reader = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(reader, (Reader, FileReader)):
        raise TypeError("a reader has name, sniff(value) and read(file, records), or opens(head) and read_file(...)")
    name: object = reader.name
    if not isinstance(name, str) or not name or name in taken:
        raise ValueError(f"its name {name!r} is not a string, or is in use")
    return _InstalledFileReader(reader) if isinstance(reader, FileReader) else _InstalledReader(reader)


class _InstalledReader:
    """A reader of a package: an error that it raises is a warning, or an error of the file."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self.name, self.title = reader, reader.name, _title(reader)

    def sniff(self, value: JSON) -> bool:
        return bool(_asked(self.name, self._reader.sniff, value))

    def lacks(self, value: JSON) -> str | None:
        lack = _asked(self.name, getattr(self._reader, "lacks", lambda value: None), value)
        return lack if isinstance(lack, str) else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return _contained(self.name, file, lambda: self._reader.read(file, records))


class _InstalledFileReader:
    """A reader of a package that opens its files itself; contained like any other."""

    def __init__(self, reader: FileReader) -> None:
        self._reader, self.name, self.title = reader, reader.name, _title(reader)

    def opens(self, head: bytes) -> bool:
        return bool(_asked(self.name, self._reader.opens, head))

    def read_file(self, path: str, progress: Progress | None) -> Runs:
        return _contained(self.name, path, lambda: self._reader.read_file(path, progress))


def _title(reader: object) -> str:
    return str(getattr(reader, "title", None) or getattr(reader, "name", ""))


def _asked(name: str, question: Callable[[Any], object], value: object) -> object:
    try:
        return question(value)
    except Exception as error:  # noqa: BLE001 - somebody else's code
        _warn(f"the reader {name!r} failed on a record: {_fault(error)}")
        return None


def _contained(name: str, file: str, read: Callable[[], Runs]) -> Iterator[Any]:
    try:
        yield from read()
    except Exception as error:  # noqa: BLE001 - somebody else's code
        yield RecordError(file, None, f"the reader {name!r} failed: {_fault(error)}")


def _fault(error: Exception) -> str:
    return preview(f"{type(error).__name__}: {error}", FAULT_CHARS)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
