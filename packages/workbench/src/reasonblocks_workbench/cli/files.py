"""Opens the files that commands share: recorded runs, output files, and the pattern store."""

from __future__ import annotations

import argparse
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from reasonblocks.exceptions import ConfigError, ReasonBlocksError, RecordError
from reasonblocks.util.files import HOME, STORE, home, write_whole

from .output import Bar, say_data, warn

if TYPE_CHECKING:
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.types import Pattern

    from ..traces import RecordedRun

STDOUT = "-"
MEGABYTE = 1024 * 1024


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        type=_format,
        metavar="NAME",
        help="the format of the files; by default, it is detected from their content",
    )


def _format(name: str) -> str:
    """Return the name of a reader. Raises `argparse.ArgumentTypeError` with all names."""
    from ..traces import installed_readers

    names = [reader.name for reader in installed_readers()]
    if name not in names:
        raise argparse.ArgumentTypeError(f"{name!r} is unknown; valid: {', '.join(names)}")
    return name


def recorded(
    path: str | os.PathLike[str], progress: Callable[[int], None], format: str | None = None
) -> Iterator[RecordedRun | RecordError]:
    """Read the runs of a file, up to the limit that the environment may raise. Raises `ConfigError`."""
    from ..traces import UNPACKED_BYTES, UNPACKED_VARIABLE, read_runs

    limit = os.environ.get(UNPACKED_VARIABLE)
    if limit and not (limit.isascii() and limit.isdigit() and len(limit) <= 9 and int(limit)):
        raise ConfigError(UNPACKED_VARIABLE, limit[:40], "must be a whole number of megabytes")
    unpacked = int(limit) * MEGABYTE if limit else UNPACKED_BYTES
    return _with_warning(os.fspath(path), read_runs(path, format=format, progress=progress, unpacked=unpacked))


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
        for run in recorded(path, partial(_progress, bar, seen, offset), format):
            if isinstance(run, RecordError):
                bar.clear()
                warn(str(run))
            else:
                seen["runs"] += 1
                yield run
    bar.clear()


def _progress(bar: Bar, seen: Counter[str], offset: int, at: int) -> None:
    bar.at(offset + at, f"{seen['runs']:,} runs")


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


def placed(path: str | os.PathLike[str] | None, name: str, option: str) -> Path:
    """Return `path` or that of the named file in the home folder, without creating it. Raises `ConfigError`."""
    if path is not None:
        return Path(path)
    folder = home(os.environ)
    if folder is None:
        raise ConfigError(HOME, None, f"this user has no home folder: set it, or give {option}")
    return folder / name


ORG = "default"
"""The org of a client without `org_id`."""
Origin: TypeAlias = Literal["starter", "yours", "yours, over the starter's", "starter, off"]


def add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="PATH", help=f"the file ({in_home(STORE)})")


def add_org(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--org", metavar="ORG", help=what)


def opened(arguments: argparse.Namespace) -> LocalStore:
    """Open the store, with the starter library under it. Its file is created when a pattern is added."""
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.patterns.starter import starter_patterns

    return LocalStore(placed(arguments.store, STORE, "--store PATH"), layer=starter_patterns())


def origin(pattern: Pattern) -> Origin:
    from reasonblocks.patterns import content_of

    shipped = _shipped()
    if pattern.id not in shipped:
        return "yours"
    is_shipped = content_of(replace(pattern, off=False)) == content_of(switched_on(pattern.id))
    if pattern.off and (is_shipped or not pattern.fields):
        return "starter, off"
    return "starter" if is_shipped else "yours, over the starter's"


def is_off_by_default(pattern_id: str) -> bool:
    """Return True for a pattern of the starter library that is used only once it is switched on."""
    shipped = _shipped()
    return pattern_id in shipped and shipped[pattern_id].off


def switched_on(pattern_id: str) -> Pattern:
    """Return a pattern of the starter library as it is when it is used."""
    return replace(_shipped()[pattern_id], off=False)


def _shipped() -> dict[str, Pattern]:
    from reasonblocks.patterns.starter import starter_patterns

    return {starter.id: starter for starter in starter_patterns()}


def named(store: LocalStore, pattern_id: str) -> Pattern:
    """Return the pattern with that id. Raises `ReasonBlocksError` with the nearest id."""
    from reasonblocks.util.text import nearest

    found = store.get(pattern_id)
    if found is None:
        near = nearest(pattern_id, [pattern.id for pattern in store.list(ORG, layer=True)])
        hint = f"; did you mean {near!r}?" if near else "; `reasonblocks patterns list` names them"
        raise ReasonBlocksError(f"no pattern is called {pattern_id!r}{hint}")
    return found
