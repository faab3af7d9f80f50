"""Compares files with findings: their relative paths, their hashes, and whether they have changed since."""

from __future__ import annotations

import os
import stat
from hashlib import sha1, sha256

from ..exceptions import ConfigError
from ..types import Finding, Freshness

FILE_BYTES = 64 * 1024 * 1024
"""The largest file that is hashed, in a fifth of a second."""
_OPEN = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW"))
"""Opening never waits for a pipe's other end, and follows no link that has replaced the file meanwhile."""


class Checkout:
    """A folder with the files of a codebase. `root` is None for a process without a current directory.

    In a `given` folder a missing file is gone; the current directory may just be another folder.
    """

    def __init__(self, root: object = None) -> None:
        self.given = root is not None
        self._root = _folder(root) if root is not None else _current()
        self._real = self._root and os.path.realpath(self._root)
        self._in_git = self._real is not None and _is_in_git(self._real)

    def relative(self, path: str) -> str:
        """Return a path below the root relative to it, and every other path as it is. Its parts are between "/"."""
        if not os.path.isabs(path) or ".." in path.split("/"):
            return path
        for root in (self._root, self._real):
            folder = "" if root is None else os.path.join(root, "").replace(os.sep, "/")
            if folder and f"{path}/".startswith(folder):
                return path[len(folder) :]
        return path

    def state(self, path: str) -> tuple[str, str]:
        """Return the file's SHA-256 and, in a Git checkout, the id of its blob; empty texts if it cannot be read."""
        data = self.read(path)
        if not isinstance(data, bytes):
            return "", ""
        return sha256(data).hexdigest(), _blob(data) if self._in_git else ""

    def read(self, path: str) -> bytes | Freshness:
        """Return the bytes of a file below the root, else the freshness of findings about it."""
        real = self._inside(path)
        if real is None:
            return "unknown"
        gone: Freshness = "stale" if self.given else "unknown"
        try:
            if not stat.S_ISREG(os.stat(real).st_mode):
                return gone
            data = _bytes(real)
            return "stale" if data is None else data
        except (FileNotFoundError, NotADirectoryError):
            return gone
        except (OSError, ValueError):  # no permission, a loop of links, or a name that no file can have
            return "unknown"

    def _inside(self, path: str) -> str | None:
        """Return the file's real path; None for one outside the root, or behind a link that leads there."""
        if self._real is None or not path or os.path.isabs(path) or ".." in path.split("/"):
            return None
        try:
            real = os.path.realpath(os.path.join(self._real, path))
        except (OSError, ValueError):
            return None
        return real if real.startswith(os.path.join(self._real, "")) else None


class Comparison:
    """Decides whether findings are stale. Reads each file of the checkout at most once or, if it changed, twice."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._read: dict[str, tuple[str, Freshness]] = {}
        self._blobs: dict[str, frozenset[str]] = {}

    def freshness(self, finding: Finding) -> Freshness:
        """Return "stale" if the file has changed or, in a given folder, is gone; other line endings are no change."""
        path = finding.file_path
        if not finding.file_hash:
            return "unknown"
        found, otherwise = self._hash_of(path)
        if not found:
            return otherwise
        if found == finding.file_hash or (finding.git_blob and finding.git_blob in self._blobs_of(path)):
            return "fresh"
        return "stale"

    def _hash_of(self, path: str) -> tuple[str, Freshness]:
        """Return the file's SHA-256; without one, the freshness of findings about it."""
        if path not in self._read:
            data = self._checkout.read(path)
            self._read[path] = (sha256(data).hexdigest(), "fresh") if isinstance(data, bytes) else ("", data)
        return self._read[path]

    def _blobs_of(self, path: str) -> frozenset[str]:
        if path not in self._blobs:
            data = self._checkout.read(path)
            self._blobs[path] = _blobs(data) if isinstance(data, bytes) else frozenset()
        return self._blobs[path]


def _blobs(data: bytes) -> frozenset[str]:
    """Return the ids of the blobs with these bytes as they are, and with either line ending."""
    unix = data.replace(b"\r\n", b"\n")
    return frozenset({_blob(data), _blob(unix), _blob(unix.replace(b"\n", b"\r\n"))})


def _blob(data: bytes) -> str:
    return sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _bytes(real: str) -> bytes | None:
    """Return the bytes of a regular file, None for a larger one."""
    number = os.open(real, _OPEN)
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        data = file.read(FILE_BYTES + 1)
    return None if len(data) > FILE_BYTES else data


def _folder(root: object) -> str:
    rule = "must be the folder of the codebase's files, and exist"
    if not isinstance(root, (str, os.PathLike)):
        raise ConfigError("root", root, rule)
    found = os.fspath(root)
    try:
        found = os.path.abspath(os.path.expanduser(found)) if isinstance(found, str) else ""
        if not os.path.isdir(found):
            raise ConfigError("root", root, rule)
    except ValueError:  # a NUL, or a surrogate that no file system accepts
        raise ConfigError("root", root, rule) from None
    return found


def _current() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _is_in_git(folder: str) -> bool:
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return False
    return True
