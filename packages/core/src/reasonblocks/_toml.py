"""TOML from the standard library, or on Python 3.10 from its backport."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Any

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError, loads
else:
    from tomli import TOMLDecodeError, loads

__all__ = ["NotToml", "TOMLDecodeError", "loads", "read_toml", "regular"]

FILE_BYTES = 1024 * 1024
"""The largest settings file that is read. A calibration has 2 KB; the parser takes 200 ms per megabyte."""


class NotToml(ValueError):
    """Raised for a file whose content is not valid TOML; the message has the reason."""


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the file's values. Raises `OSError` for a file that cannot be read, `NotToml` for wrong content."""
    regular(path)
    with open(path, "rb") as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise NotToml(f"it is longer than {FILE_BYTES:,} bytes")
    try:
        values: dict[str, Any] = loads(data.decode("utf-8"))
    except ValueError as exc:  # not UTF-8, not TOML, or a date or number that Python cannot represent
        raise NotToml(str(exc)) from exc
    except RecursionError as exc:
        raise NotToml("it is nested too deeply") from exc
    return values


def regular(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` unless the path is a regular file, because reading from a pipe could block."""
    try:
        mode = os.stat(path).st_mode
    except ValueError as exc:  # a NUL, or a surrogate that no file system accepts
        raise OSError(errno.EINVAL, f"no file has such a name: {exc}") from exc
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)
