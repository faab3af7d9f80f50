"""Replaces files atomically: after an error, a full disk or a crash, the file is the old one or the new one."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

__all__ = ["write_whole"]

SYSTEM_FOLDERS = ("/dev/", "/proc/")
"""Names in these folders, such as /dev/stdout, may refer to a regular file that another program has open."""


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write the text as UTF-8, with the same line ends on every system. Raises `OSError` with the path.

    An existing file keeps its mode. If the path is a link, its target is replaced. Pipes and devices are written to
    directly.
    """
    name = os.fspath(path)
    data = text.encode("utf-8")
    if os.path.abspath(name).startswith(SYSTEM_FOLDERS) or _is_special(name):
        Path(name).write_bytes(data)
        return
    target = os.path.realpath(name)
    try:
        _replace(target, data)
    except OSError as error:
        told = error.strerror or str(error)
        raise OSError(error.errno, f"cannot be written ({told}); what was there is unchanged", name) from error


def _is_special(name: str) -> bool:
    """Return True if the name exists and is not a regular file; a folder counts, so that opening it raises."""
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return False


def _replace(target: str, data: bytes) -> None:
    before = os.stat(target) if os.path.exists(target) else None
    if before is not None:
        with open(target, "ab"):  # raises if the file is not writable
            pass
    folder = os.path.dirname(target)
    beside = os.path.join(folder, f".reasonblocks-{token_hex(8)}")
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                _as_before(beside, before)
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(folder)


def _as_before(beside: str, before: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(OSError):  # only root may change a file's owner
            os.chown(beside, before.st_uid, before.st_gid)
    os.chmod(beside, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: str) -> None:
    """Sync the folder, so that the new name survives a power failure; some systems cannot open folders."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
