"""A store keeps rows in a file of JSON lines, so that an interrupted experiment goes on where it stopped."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from io import BufferedRandom
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, TypeAlias

from .rows import Row

__all__ = ["DamagedFile", "FileInUse", "Kept", "OtherSettings", "Store", "StoreError", "build", "digest", "read"]

Settings: TypeAlias = Mapping[str, Any]
"""Everything that has to be equal for rows to be compared, by name: JSON values."""
Key: TypeAlias = "tuple[str, str, str, str, int, str, int]"
HEADER = "settings"
PACKAGE = "reasonblocks"
CLONE = Path(__file__).parents[2]
DIGEST_CHARACTERS = 12


class StoreError(Exception):
    """A file of rows that cannot be used."""


class OtherSettings(StoreError):
    """Raised for a file whose rows were made with another value of a setting; `name` is the first that differs."""

    def __init__(self, path: Path, name: str, there: object, here: object) -> None:
        self.path, self.name, self.there, self.here = path, name, there, here
        super().__init__(
            f"the rows in '{path}' were made with {name} {there!r}, and this run has {here!r}: "
            "choose the same setting, or another folder for the rows"
        )


class FileInUse(StoreError):
    """Raised for a file that another process appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"another process appends to '{path}': wait for it, or choose another folder for the rows")


class DamagedFile(StoreError):
    """Raised for a file with a line, other than the last, that is no row; `line` is 1-based."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.path, self.line, self.reason = path, line, reason
        super().__init__(f"line {line} of '{path}' is no row ({reason}): remove the line, or the file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The content of a file. Of a run that was made again, `rows` has the last row only.

    `damaged` is True if the last line was not written to its end, as by a process that was killed; `good` is the number
    of bytes before it.
    """

    settings: Settings
    rows: tuple[Row, ...]
    good: int
    damaged: bool


def read(path: Path) -> Kept:
    """Return what is in the file; a last line that was not written to its end is passed over.

    Raises `OSError` for a file that cannot be read, and `DamagedFile` for one that holds anything else.
    """
    return _parsed(path, path.read_bytes())


def _parsed(path: Path, data: bytes) -> Kept:
    settings: Settings | None = None
    rows: dict[Key, Row] = {}
    good = 0
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
            if settings is None:
                settings = dict(value[HEADER])
            else:
                row = Row.of(value)
                rows[row.key] = row
        except (KeyError, TypeError, ValueError) as error:
            if number < len(lines) or not _torn(line, first=settings is None):
                raise DamagedFile(path, number, f"{type(error).__name__}: {error}") from error
            break
        good += len(line)
    return Kept(settings=settings or {}, rows=tuple(rows.values()), good=good, damaged=good < len(data))


def _torn(line: bytes, *, first: bool) -> bool:
    """Return True for the beginning of a line that was not written to its end."""
    head = json.dumps({HEADER: {}}).encode().removesuffix(b"}}")
    return not line.endswith(b"\n") and (not first or line.startswith(head) or head.startswith(line))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


class Store:
    """Rows in a file, which one process at a time may append to; threads may share it.

    A new file gets a header line with the settings. Raises `OtherSettings` for a file of other settings, `FileInUse`
    while another process has it open, `DamagedFile`, and `OSError`. A damaged last line is cut off, and `say` is told.
    """

    def __init__(self, path: Path, settings: Settings, *, say: Callable[[str], None] = _say) -> None:
        self.path = path
        self._writing = Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        try:
            _lock(self._file, path)
            kept = self._mended(say)
            if kept.settings:
                _same(path, kept.settings, settings)
            else:
                self._write({HEADER: dict(settings)})
        except BaseException:
            self._file.close()
            raise
        self._rows = {row.key: row for row in kept.rows}

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows, in the order in which their runs were first made."""
        return tuple(self._rows.values())

    @property
    def done(self) -> set[Key]:
        """The keys of the runs that need not be made again: those that ended without an error."""
        return {key for key, row in self._rows.items() if row.error is None}

    def append(self, row: Row) -> None:
        """Write the row, and hand it to the system at once."""
        with self._writing:
            self._write(row.as_dict())
            self._rows[row.key] = row

    def close(self) -> None:
        """Close the file, so that another process can append to it."""
        self._file.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _mended(self, say: Callable[[str], None]) -> Kept:
        self._file.seek(0)
        data = self._file.read()
        kept = _parsed(self.path, data)
        if kept.damaged:
            self._file.truncate(kept.good)
            say(f"'{self.path}' ended in a damaged line, which is cut off; its run is made again")
        elif data and not data.endswith(b"\n"):
            self._file.write(b"\n")
        return kept

    def _write(self, value: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(value).encode() + b"\n")
        self._file.flush()


def _lock(file: BufferedRandom, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise FileInUse(path) from error


def _same(path: Path, there: Settings, here: Settings) -> None:
    given = json.loads(json.dumps(dict(here)))  # tuples become lists, as they are in the file
    for name in dict.fromkeys((*given, *there)):
        if given.get(name) != there.get(name):
            raise OtherSettings(path, name, there.get(name), given.get(name))


def digest(texts: Mapping[str, str]) -> str:
    """Return a short digest of the arms' texts, so that rows of other wordings are told apart."""
    return hashlib.sha256(json.dumps(dict(texts), sort_keys=True).encode()).hexdigest()[:DIGEST_CHARACTERS]


def build() -> str:
    """Return the commit of the clone, with "+changes" if its packages were changed since; else the package's version.

    Without both it is "unknown".
    """
    commit = _git("rev-parse", "HEAD")
    if commit is not None:
        return commit + ("+changes" if _git("status", "--porcelain", "--", "packages") else "")
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "unknown"


def _git(*command: str) -> str | None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *command], cwd=CLONE, env=environment, capture_output=True, encoding="utf-8", check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
