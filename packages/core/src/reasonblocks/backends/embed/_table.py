"""The shipped model in this process: one table, read when it is first asked for, kept for good."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from ...exceptions import Unavailable
from ._tokenizer import UNKNOWN, Tokenizer

__all__ = ["DATA", "DIM", "Table", "read", "table"]

DATA = Path(__file__).with_name("data")
DIM = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """`rows`: int8 [pieces, 256], read only, in the order of the ids that `vocabulary` and `tokenizer` give."""

    rows: NDArray[numpy.int8]
    vocabulary: Mapping[str, int]
    tokenizer: Tokenizer
    unknown: int
    """The id of a word that no pieces make; its row is zeros."""


_lock = threading.Lock()
_loaded: list[Table] = []


def table() -> Table:
    """The one table. Raises `Unavailable` when its files are missing or damaged."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(read(DATA))
    return _loaded[0]


def _after_fork() -> None:
    """Another thread of the parent may have been loading: its lock would never open here."""
    global _lock
    _lock = threading.Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork)


def read(folder: Path) -> Table:
    """The table that `tools/build_embed.py` wrote to a folder."""
    try:
        pieces = (folder / "vocabulary.txt").read_bytes().decode().split("\n")
        numbers = numpy.fromfile(folder / "rows.int8", dtype=numpy.int8)
    except OSError as error:
        raise _broken(f"{error.filename} cannot be read, {error.strerror}") from error
    if len(numbers) != len(pieces) * DIM:
        raise _broken(f"{folder} holds {len(pieces)} pieces and {len(numbers)} numbers, not {DIM} of each")
    rows = numbers.reshape(-1, DIM)
    rows.setflags(write=False)
    vocabulary = dict(zip(pieces, range(len(pieces)), strict=True))
    return Table(rows=rows, vocabulary=vocabulary, tokenizer=Tokenizer(vocabulary), unknown=vocabulary[UNKNOWN])


def _broken(reason: str) -> Unavailable:
    return Unavailable("StaticEmbedder", f"{reason}: install reasonblocks-core again")
