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
"""Of a file of settings: a calibration takes 2 KB, and the parser 200 ms a megabyte."""


class NotToml(ValueError):
    """What is in the file cannot be read as TOML; the message says why."""


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The file's values. Raises `OSError` for what is no readable file, `NotToml` for what is in it."""
    regular(path)
    with open(path, "rb") as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise NotToml(f"it is longer than {FILE_BYTES:,} bytes")
    try:
        values: dict[str, Any] = loads(data.decode("utf-8"))
    except ValueError as exc:  # no UTF-8, no TOML, or a date or a number that Python cannot hold
        raise NotToml(str(exc)) from exc
    except RecursionError as exc:
        raise NotToml("it is nested too deeply") from exc
    return values


def regular(path: str | os.PathLike[str]) -> None:
    """Raises `OSError` for what is no regular file: a pipe would be waited for."""
    try:
        mode = os.stat(path).st_mode
    except ValueError as exc:  # a NUL, or a surrogate that no file system takes
        raise OSError(errno.EINVAL, f"no file has such a name: {exc}") from exc
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)
