"""The command `reasonblocks`: its subcommands, and how any error ends, in one line with an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from .. import __version__
from ..exceptions import ConfigError, NotYetAvailable, ReasonBlocksError
from . import _calibrate_command, _doctor, _learn_command, _patterns_command, _replay_command
from ._output import OK, PROBLEM, USAGE, Bar, printable, warnings_once

INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""


class _Parser(argparse.ArgumentParser):
    """Says a usage error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 ok, 1 a problem, 2 usage. Never raises for what a user can cause."""
    try:
        return _run(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        _drop_output()
        return OK
    except MemoryError:
        print("reasonblocks: out of memory", file=sys.stderr)
        return PROBLEM
    except (ReasonBlocksError, OSError) as error:
        if isinstance(error, OSError):  # a full disk: what is still buffered would fail again at exit
            _drop_output()
        print(f"reasonblocks: {printable(str(error))}", file=sys.stderr)
        return USAGE if isinstance(error, (ConfigError, NotYetAvailable)) else PROBLEM


def _run(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    with warnings_once(Bar(total=0, active=False)):
        code = command(arguments)
    sys.stdout.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="reasonblocks", description="Steers tool-calling agents.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"reasonblocks {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (_replay_command, _calibrate_command, _patterns_command, _learn_command, _doctor):
        command.add_to(commands)
    return parser


def _drop_output() -> None:
    """So that the flush at exit has nowhere to fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
