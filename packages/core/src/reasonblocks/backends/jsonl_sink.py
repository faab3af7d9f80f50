"""Writes events as JSON lines to a file."""

from __future__ import annotations

import os
from typing import TextIO

from ..concurrency.forks import close_at_fork, no_fork
from ..events import Event
from ..util.files import identity, open_private
from ..util.json import compact


class JsonlSink:
    """Appends each event as a line and flushes it; opens the file with the first event. Used by one thread at a time.

    The file is created for this user only. One that was deleted meanwhile is created again, and after a rotation the
    next line goes to the new file. After an error (a full disk) the event is lost, and the next event starts a new
    line. A fork closes the file, and each process opens it again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: TextIO | None = None
        self._identity: tuple[int, int] | None = None
        self._torn = False

    def emit(self, event: Event) -> None:
        line = compact(event.as_dict()) + "\n"
        with no_fork:
            self._write(self._opened(), line)

    def close(self) -> None:
        with no_fork:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def _opened(self) -> TextIO:
        if self._file is not None and (self._identity is None or identity(self.path) != self._identity):
            self._torn = False
            self._discard()  # the file was deleted or replaced
        if self._file is None:
            close_at_fork(self)
            self._file = open(  # noqa: SIM115 - open over events
                self.path, "a", encoding="utf-8", errors="replace", opener=open_private
            )
            self._identity = identity(self.path)
        return self._file

    def _write(self, file: TextIO, line: str) -> None:
        try:
            file.write("\n" + line if self._torn else line)
            file.flush()
        except OSError:
            self._torn = True
            self._discard()
            raise
        self._torn = False

    def _discard(self) -> None:
        """Forget the file with what its buffer still holds: flushing it again would fail again."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError:
            pass
