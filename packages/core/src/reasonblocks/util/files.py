"""Locates the user's folder, reads TOML files, creates private files, and writes files as a whole."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError as TOMLDecodeError
    from tomllib import loads as loads
else:
    from tomli import TOMLDecodeError as TOMLDecodeError
    from tomli import loads as loads

HOME = "REASONBLOCKS_HOME"
STORE = "patterns.db"
PROFILES = "profiles.db"


def home(environ: Mapping[str, str]) -> Path | None:
    """Return the user's folder, which may not exist yet; None for a user without a home folder."""
    try:
        given = environ.get(HOME)
        return Path(given).expanduser().absolute() if given else Path.home() / ".reasonblocks"
    except RuntimeError:
        return None


def store_path(environ: Mapping[str, str]) -> Path | None:
    """Return the file of the user's own patterns."""
    folder = home(environ)
    return folder and folder / STORE


def profiles_path(environ: Mapping[str, str]) -> Path | None:
    """Return the file of the profiles of the user's agents."""
    folder = home(environ)
    return folder and folder / PROFILES


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
        values: dict[str, Any] = loads(data.decode("utf-8-sig"))
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
    _check_mode(mode, path)


def regular_or_missing(*paths: str) -> None:
    """Raise `OSError` for a path that is no regular file; one that is not there, or no longer, is skipped."""
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            continue
        _check_mode(mode, path)


def _check_mode(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)


def identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return the device and the inode of the file that has this path now; None without one."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def create_private(path: str | os.PathLike[str]) -> None:
    """Create an empty file that only this user may read, or the one that a link refers to. An existing one stays.

    An existing file is not opened: closing it would drop the locks that SQLite has on it in this process.
    """
    with suppress(FileExistsError):
        os.close(open_private(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL))


def open_private(path: str, flags: int) -> int:
    """Open a file as `os.open` does; if it is created, only this user may read it."""
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o600)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Create a folder, and those above it that are missing, for this user only. Existing ones keep their modes."""
    folder = os.path.abspath(path)
    above = os.path.dirname(folder)
    if not os.path.exists(above):
        make_folder(above)
    Path(folder).mkdir(mode=0o700, exist_ok=True)


SYSTEM_FOLDERS = ("/dev/", "/proc/")
"""Names in these folders, such as /dev/stdout, may refer to a regular file that another program has open."""


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write the text as UTF-8, with the same line endings on every system. Raises `OSError` with the path.

    An existing file keeps its mode. If the path is a link, its target is replaced. Pipes and devices are written to
    directly.
    """
    name = os.fspath(path)
    data = text.encode("utf-8")
    special = os.path.abspath(name).startswith(SYSTEM_FOLDERS) or _is_special(name)
    try:
        if special:
            Path(name).write_bytes(data)
        else:
            _replace(os.path.realpath(name), data)
    except OSError as error:
        raise _named(error, name, kept=not special) from error


def _named(error: OSError, name: str, *, kept: bool) -> OSError:
    """Return the error as a sentence with the path that was given, in the same class and with the same number."""
    reason = error.strerror or str(error)
    reason = f"{reason[:1].lower()}{reason[1:]}"
    if not os.path.isdir(os.path.dirname(os.path.realpath(name))):
        reason = "no such folder"
    unchanged = "; what was there is unchanged" if kept and os.path.lexists(name) else ""
    named = type(error)(f"cannot write {name}: {reason}{unchanged}")
    named.errno = error.errno
    return named


def _is_special(name: str) -> bool:
    """Return True if the name exists and is not a regular file; a folder counts, so that opening it raises."""
    try:
        return not stat.S_ISREG(os.stat(name).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _replace(target: str, data: bytes) -> None:
    before = os.stat(target) if os.path.exists(target) else None
    if before is not None:
        with open(target, "ab"):  # raises if the file is not writable
            pass
    folder = os.path.dirname(target)
    beside = os.path.join(folder, f".reasonblocks-{token_hex(8)}")
    try:
        with open(beside, "xb", opener=None if before is None else open_private) as file:
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
