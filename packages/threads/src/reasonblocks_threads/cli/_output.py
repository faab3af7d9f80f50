"""Prints to the terminal, parses options, and turns any error into one line and an exit code.

Foreign texts (ids, titles, errors) may contain escape sequences, so everything printed passes through `clean`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn, TextIO

from reasonblocks.exceptions import ConfigError, ReasonBlocksError

OK, PROBLEM, USAGE = 0, 1, 2
INTERRUPTED = 130
"""The exit code that a shell reports for a program ended by Ctrl-C."""


class FlagError(ConfigError):
    """A flag that breaks a rule. Unlike that of a setting, its message has no value."""

    def __init__(self, flag: str, rule: str) -> None:
        super().__init__(flag, None, rule)
        self.args = (f"{flag}: {rule}",)


class Parser(argparse.ArgumentParser):
    """A parser that reports a usage error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {clean(message).strip()} (see {self.prog} --help)\n")


def clean(text: str) -> str:
    """Return the text as one line of the same length, without control, bidi and invisible characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text)


def say(text: str = "") -> None:
    """Print a line on stdout. Characters missing from its encoding are escaped."""
    print(_encodable(clean(text), sys.stdout))


def warn(text: str) -> None:
    """Print a line on stderr."""
    print(_encodable(clean(text).strip(), sys.stderr), file=sys.stderr)


def show(title: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a title and aligned rows, the first of which names the columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    say(title)
    for row in rows:
        say("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    say()


def run_guarded(program: str, run: Callable[[], int]) -> int:
    """Return the exit code of `run`, and print an error of ours or of the system as one line of this program."""
    try:
        code = run()
        if sys.stdout is not None:  # it is None if the shell has closed it
            sys.stdout.flush()
        return code
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it
        _drop_output()
        return OK
    except MemoryError:
        print(f"{program}: out of memory", file=sys.stderr)
        return PROBLEM
    except (ReasonBlocksError, OSError) as error:
        if isinstance(error, OSError):  # after a full disk, flushing the buffer would fail again at exit
            _drop_output()
        print(f"{program}: {clean(str(error)).strip()}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigError) else PROBLEM


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _drop_output() -> None:
    """Redirect stdout to the null device, so that the flush at exit cannot fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
