"""Opens the files that commands share: recorded runs, output files, and those in the home folder."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.util.files import HOME, home, write_whole
from reasonblocks.util.text import count_noun

from .output import Bar, say_data, warn

if TYPE_CHECKING:
    from ..traces import RecordedRun

STDOUT = "-"
MEGABYTE = 1024 * 1024


def read_recorded(
    path: str | os.PathLike[str], progress: Callable[[int], None], format: str | None = None
) -> Iterator[RecordedRun | RecordError]:
    """Read the runs of a file, up to the limit that the environment may raise. Raises `ConfigError`."""
    from ..traces import read_runs

    runs = read_runs(path, format=format, progress=progress, unpacked=most_unpacked())
    return _with_warning(os.fspath(path), runs)


def most_unpacked() -> int:
    """Return the bytes of a packed file's content that are read. Raises `ConfigError` for a wrong variable."""
    from ..traces import UNPACKED_BYTES, UNPACKED_VARIABLE

    limit = os.environ.get(UNPACKED_VARIABLE)
    if limit and not (limit.isascii() and limit.isdigit() and len(limit) <= 9 and int(limit)):
        raise ConfigError(UNPACKED_VARIABLE, limit[:40], "must be a whole number of megabytes")
    return int(limit) * MEGABYTE if limit else UNPACKED_BYTES


def _with_warning(path: str, runs: Iterator[RecordedRun | RecordError]) -> Iterator[RecordedRun | RecordError]:
    """Yield the runs; warn at the end if most of their tool calls have no result in the file."""
    calls = unanswered = 0
    for run in runs:
        if not isinstance(run, RecordError):
            for step in run.steps[:-1]:
                calls += len(step.tool_calls)
                unanswered += max(0, len(step.tool_calls) - len(step.tool_results))
        yield run
    if unanswered > calls / 2:
        text = f"{unanswered:,} of {calls:,} tool calls have no result in the file; they count as empty results"
        logging.getLogger("reasonblocks").warning("%s: %s (is `--format` right?)", path, text)


def runs_of(files: Sequence[str | os.PathLike[str]], format: str | None = None) -> Iterator[RecordedRun]:
    """Yield all runs of all files, with a progress bar; errors go to stderr."""
    bar, seen = Bar(total=sum(map(size, files))), Counter[str]()
    for path, offset in zip(files, accumulate(map(size, files), initial=0), strict=False):
        for run in read_recorded(path, partial(_progress, bar, seen, offset), format):
            if isinstance(run, RecordError):
                bar.clear()
                warn(str(run))
            else:
                seen["runs"] += 1
                yield run
    bar.clear()


def _progress(bar: Bar, seen: Counter[str], offset: int, at: int) -> None:
    bar.at(offset + at, count_noun(seen["runs"], "run"))


def size(path: str | os.PathLike[str]) -> int:
    """Return the size in bytes of a file, or of all files in a folder; 0 without a file."""
    from ..traces import files_in

    with suppress(OSError):
        return sum(Path(file).stat().st_size for file in files_in(path))
    return 0


def write(path: str | os.PathLike[str], text: str, *, toml: bool = True) -> None:
    """Write the whole text to a file, or to stdout for `STDOUT`. After an error an existing file is unchanged."""
    if path != STDOUT:
        write_whole(path, text)
    elif text:
        say_data(text, toml=toml)


PROPOSALS = "proposals.jsonl"


def in_home(name: str) -> str:
    """Describe, for a help text, where the file of that name is."""
    return f"${HOME}/{name}, else ~/.reasonblocks/{name}"


def home_path(path: str | os.PathLike[str] | None, name: str, option: str) -> Path:
    """Return `path` or that of the named file in the home folder, without creating it. Raises `ConfigError`."""
    if path is not None:
        return Path(path)
    folder = home(os.environ)
    if folder is None:
        raise ConfigError(HOME, None, f"this user has no home folder: set it, or give {option}")
    return folder / name


ORG = "default"
"""The org of a client without `org_id`."""
