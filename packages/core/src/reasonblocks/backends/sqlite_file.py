"""Creates SQLite files for this user only, and notices that a file was deleted or replaced while it was open."""

from __future__ import annotations

import os
from contextlib import suppress

from ..util.files import create_private, identity

__all__ = ["SQLiteFile"]


class SQLiteFile:
    """The path of a SQLite file, and the file that was last opened there.

    SQLite itself goes on with a file that was deleted or replaced: what it writes to a file without a name is lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._was_opened = False
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None

    def create(self) -> None:
        """Create the file if it is missing, for this user only; SQLite gives the files beside it the same mode.

        What a deleted file left beside it is removed first: SQLite would read the index of the old log.
        """
        real = os.path.realpath(self.path)
        left = {name: identity(name) for name in (f"{real}-wal", f"{real}-shm")}
        if not os.path.exists(real):
            for name, found in left.items():
                if found is not None and identity(name) == found:  # not that of a process which was faster
                    with suppress(OSError):
                        os.unlink(name)
            create_private(real)

    def opened(self) -> None:
        """Remember the file with its log. Call it after opening the file and after switching it to its log."""
        self._was_opened = True
        self._file, self._log = identity(self.path), identity(self._log_path())

    def is_lost(self) -> bool:
        """Return True if the file that was opened has been deleted or replaced."""
        return self._was_opened and (self._file is None or identity(self.path) != self._file)

    def old_log(self) -> str | None:
        """Return why the file that took the place of a lost one must not be opened; None if it may be.

        SQLite would write the log of the old file into the new one.
        """
        log = self._log_path()
        if not os.path.exists(self.path) or self._log is None or identity(log) != self._log or not os.path.getsize(log):
            return None
        return (
            f"the file was replaced, but the log of the one before is still beside it: delete {log} and "
            f"{log[:-3]}shm, then try again"
        )

    def _log_path(self) -> str:
        return f"{os.path.realpath(self.path)}-wal"
