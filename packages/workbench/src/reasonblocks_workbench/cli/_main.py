"""Implements the command `reasonblocks`: runs a subcommand and turns any error into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn, TypeAlias

from reasonblocks import __version__
from reasonblocks.exceptions import ConfigError, ReasonBlocksError

from . import (
    _calibrate_command,
    _doctor,
    _explain_command,
    _learn_command,
    _memory_command,
    _patterns_calibrate,
    _patterns_change,
    _patterns_read,
    _profile_command,
    _replay_command,
    _report_command,
    _watch_command,
)
from .output import OK, PROBLEM, USAGE, Bar, Parsers, printable, warnings_once

INTERRUPTED = 130
"""The exit code that a shell reports for a program ended by Ctrl-C."""


_Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class Parser(argparse.ArgumentParser):
    """A parser that reports a usage error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 a problem, 2 usage. Never raises for a user's error."""
    return guarded("reasonblocks", lambda: _run(argv))


def guarded(program: str, run: Callable[[], int]) -> int:
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
        print(f"{program}: {printable(str(error))}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigError) else PROBLEM


def _run(argv: Sequence[str] | None) -> int:
    given = sys.argv[1:] if argv is None else argv
    arguments = _parser(given).parse_args(given)
    command: Callable[[argparse.Namespace], int] = arguments.command
    with warnings_once(Bar(total=0, active=False)):
        return command(arguments)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(prog="reasonblocks", description="Steers tool-calling agents.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"reasonblocks {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _replay_command.add_to(commands)
    _report_command.add_to(commands)
    _explain_command.add_to(commands)
    _watch_command.add_to(commands)
    _calibrate_command.add_to(commands)
    _add_patterns(commands)
    _learn_command.add_to(commands)
    _memory_command.add_to(commands)
    _profile_command.add_to(commands)
    _doctor.add_to(commands)
    wanted = given[0] if given else None
    if wanted not in commands.choices:  # only then, because the search reads the metadata of every distribution
        _add_found(parser, commands, wanted)
    return parser


def _add_found(parser: argparse.ArgumentParser, commands: _Commands, wanted: str | None) -> None:
    """Add the commands of other packages. End with the install command if a wanted one of ours is missing."""
    from . import _plugins

    _plugins.add_found(commands, wanted)
    if wanted is not None and wanted not in commands.choices and (reason := _plugins.missing(wanted)):
        parser.exit(USAGE, f"reasonblocks: {reason}\n")


def _add_patterns(commands: Parsers) -> None:
    parser = commands.add_parser(
        "patterns",
        help="manage, search and check the patterns that agents are given",
        description="Manages the pattern store: adds, removes, lists, searches and checks patterns.",
        allow_abbrev=False,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _patterns_change.add_to(subcommands)
    _patterns_read.add_to(subcommands)
    _patterns_calibrate.add_to(subcommands)


def _drop_output() -> None:
    """Redirect stdout to the null device, so that the flush at exit cannot fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
