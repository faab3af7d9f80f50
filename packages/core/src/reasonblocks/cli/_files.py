"""Which files a command reads runs from and writes to: one after another with a bar, what is malformed said."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from .._write import write_whole
from ..exceptions import ConfigError, RecordError
from ._output import Bar, say_data, warn

if TYPE_CHECKING:
    from ..traces import RecordedRun

__all__ = ["STDOUT", "recorded", "runs_of", "size", "write"]

STDOUT = "-"
MEGABYTE = 1024 * 1024


def recorded(path: str, progress: Callable[[int], None]) -> Iterator[RecordedRun | RecordError]:
    """Read the runs of a file, up to the limit that the environment may raise. Raises `ConfigError`."""
    from ..traces import UNPACKED_BYTES, UNPACKED_VARIABLE, read_runs

    given = os.environ.get(UNPACKED_VARIABLE)
    if given and not (given.isascii() and given.isdigit() and len(given) <= 9 and int(given)):
        raise ConfigError(UNPACKED_VARIABLE, given[:40], "must be a whole number of megabytes")
    return read_runs(path, progress=progress, unpacked=int(given) * MEGABYTE if given else UNPACKED_BYTES)


def runs_of(files: Sequence[str]) -> Iterator[RecordedRun]:
    """All runs of all files; what is malformed goes to stderr."""
    bar, seen = Bar(total=sum(map(size, files))), Counter[str]()
    for path, offset in zip(files, accumulate(map(size, files), initial=0), strict=False):
        for run in recorded(path, partial(_progress, bar, seen, offset)):
            if isinstance(run, RecordError):
                bar.clear()
                warn(str(run))
            else:
                seen["runs"] += 1
                yield run
    bar.clear()


def _progress(bar: Bar, seen: Counter[str], offset: int, at: int) -> None:
    bar.at(offset + at, f"{seen['runs']:,} runs")


def size(path: str) -> int:
    """Bytes of the file; 0 where there is none."""
    with suppress(OSError):
        return Path(path).stat().st_size
    return 0


def write(path: str, text: str, *, toml: bool = True) -> None:
    """Write the whole text to a file, or to stdout for `STDOUT`. After an error an existing file is unchanged."""
    if path != STDOUT:
        write_whole(path, text)
    elif text:
        say_data(text, toml=toml)
