"""Parses the command line of `reasonblocks-threads` and runs one command with the threads of a file or a server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from reasonblocks.exceptions import ConfigError
from reasonblocks.util.files import HOME, home

from ..phases import Phase
from ..threads import Threads
from . import _answer, _look
from ._output import Parser, run_guarded
from ._plain import one_of

PROGRAM = "reasonblocks-threads"
FILE = "threads.db"
ORG = "default"
_SCHEMES = ("postgresql://", "postgres://")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 refused, 2 usage. Never raises for a user's error."""
    return run_guarded(PROGRAM, lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    command: Callable[[Threads, argparse.Namespace], int] = arguments.command
    with Threads(_database(arguments.db), org_id=arguments.org) as threads:
        return command(threads, arguments)


def _database(given: str | None) -> str:
    """Return a server's URL, or the path of a file that exists: a mistyped path must not make an empty file."""
    if given and given.startswith(_SCHEMES):
        return given
    folder = home(os.environ)
    path = Path(given).expanduser() if given else folder and folder / FILE
    if path is None or not path.is_file():
        raise ConfigError("--db", given or str(path), f"is not a file; name the file that your `Threads` use, a "
                          f"postgresql:// URL, or set ${HOME}")  # fmt: skip
    return str(path)


def _parser() -> Parser:
    parser = Parser(prog=PROGRAM, description="Shows threads and answers their cards.", allow_abbrev=False)
    _add_general(parser, first=True)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, help: str, command: Callable[[Threads, argparse.Namespace], int]) -> Parser:
        found = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
        _add_general(found, first=False)
        found.set_defaults(command=command)
        return found

    listed = add("list", "list the live threads, the last changed first", _look.list_threads)
    listed.add_argument("--all", action="store_true", help="include ended threads")
    listed.add_argument("--run", metavar="ID", help="only threads about this run")
    listed.add_argument("--phase", type=one_of(Phase), metavar="PHASE", help="only threads in this phase")
    listed.add_argument("--limit", type=_count, default=100, metavar="N", help="at most this many (100)")
    shown = add("show", "show a thread with its open card", _look.show_thread)
    shown.add_argument("id", metavar="ID", help="the id of a thread or of a card")
    shown.add_argument("--log", action="store_true", help="show its log as well")
    _answer.add_arguments(add("answer", "answer a card, and do the due work that this command can do", _answer.answer))
    watched = add("watch", "print new events of all threads, until Ctrl-C", _look.watch)
    watched.add_argument(
        "--after", type=_count, metavar="POSITION", help="begin after this position (the newest event)"
    )
    watched.add_argument("--every", type=_seconds, default=1.0, metavar="S", help="seconds between two polls (1)")
    watched.add_argument("--once", action="store_true", help="print the events so far and exit")
    drained = add("drain", "do the due work that this command can do", _look.drain)
    drained.add_argument("--limit", type=_count, metavar="N", help="at most this many work items")
    checked = add("doctor", "look for inconsistent rows; exit code 1 if any remain", _look.doctor)
    checked.add_argument("--repair", action="store_true", help="repair them from the logs")
    return parser


def _add_general(parser: Parser, *, first: bool) -> None:
    """Add the options that may be placed before and after the command's name."""
    default = None if first else argparse.SUPPRESS
    parser.add_argument(
        "--db", default=default, metavar="FILE|URL", help=f"the file or PostgreSQL URL (${HOME}/{FILE}); "
        "on a command line, every user of this machine can see a password",
    )  # fmt: skip
    parser.add_argument(
        "--org", default=ORG if first else argparse.SUPPRESS, metavar="ID", help=f"the org of the threads ({ORG})"
    )
    parser.add_argument(
        "--json", action="store_true", default=False if first else argparse.SUPPRESS,
        help="print only JSON, one object on each line",
    )  # fmt: skip


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.01 <= found <= 3_600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.01 to 3600")
    return found
