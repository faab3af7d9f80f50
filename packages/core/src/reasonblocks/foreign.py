"""Refuses the other product called `reasonblocks`, whose files overwrite those of this package."""

from __future__ import annotations

import os
import sys
from functools import cache

FOREIGN = "reasonblocks"
METADATA = ("dist-info", "egg-info", "egg")


def refuse_foreign() -> None:
    """Raise `ForeignDistribution` if the other product is installed anywhere on `sys.path`."""
    if (found := find_foreign()) is not None:
        from .exceptions import ForeignDistribution  # not for an import that succeeds

        raise ForeignDistribution(FOREIGN, found)


def find_foreign() -> str | None:
    """Return the path of the other product's metadata; None if it is not installed.

    Each folder is listed once in a process, because every import of this package pays for it: importing
    `importlib.metadata` would take a hundred times as long.
    """
    path: list[object] = [*sys.path]  # whose other items Python ignores
    folders = (folder for folder in path if isinstance(folder, str))
    return next((found for found in map(_metadata_in, folders) if found is not None), None)


@cache
def _metadata_in(folder: str) -> str | None:
    if _is_foreign(os.path.basename(folder)):
        return folder  # an egg
    try:
        names = os.listdir(folder or os.curdir)
    except NotADirectoryError:  # a zip file, whose reading takes longer than this import
        from importlib.metadata import distributions

        return next((folder for _ in distributions(name=FOREIGN, path=[folder])), None)
    except (OSError, ValueError):  # like the import system, skip what cannot be read
        return None
    return next((os.path.join(folder, name) for name in names if _is_foreign(name)), None)


def _is_foreign(name: str) -> bool:
    """Return True for metadata such as `reasonblocks-1.0.dist-info`, in any case.

    Ours are called `reasonblocks_core-...`, or `reasonblocks-core-...` by tools that do not normalise a name.
    """
    if name[: len(FOREIGN)].lower() != FOREIGN:  # at once, because a folder may have thousands of names
        return False
    version, _, kind = name[len(FOREIGN) :].lower().rpartition(".")
    return kind in METADATA and (not version or (version[0] == "-" and not version[1:2].isalpha()))
