"""Writes a file as a whole: after an error, a full disk or a crash it is the old one or the new one."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

__all__ = ["write_whole"]

SYSTEM_FOLDERS = ("/dev/", "/proc/")
"""A name in them, such as /dev/stdout, may lead to a regular file that another program holds open."""


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write the text as UTF-8, lines ending alike on every system. Raises `OSError` that names the path.

    A file that is there keeps its mode; of a link the target is replaced. A pipe or a device is written to directly.
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
    """Whether there is something that is no regular file; a folder counts, so that opening it says so."""
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return False


def _replace(target: str, data: bytes) -> None:
    before = os.stat(target) if os.path.exists(target) else None
    if before is not None:
        with open(target, "ab"):  # raises for a file that may not be written to
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
        with suppress(OSError):  # only root may give a file to others
            os.chown(beside, before.st_uid, before.st_gid)
    os.chmod(beside, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: str) -> None:
    """So that the new name outlives a power cut; not every system opens folders."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
