"""`reasonblocks patterns`: its subcommands."""

from __future__ import annotations

from . import _patterns_calibrate, _patterns_change, _patterns_check, _patterns_look
from ._output import Parsers

COMMANDS = (
    _patterns_change,
    _patterns_look,
    _patterns_check,
    _patterns_calibrate,
)


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "patterns",
        help="write, try and check the lessons that agents are given",
        description="The store of patterns: what it has, what a text would find, and what is wrong with one.",
        allow_abbrev=False,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(subcommands)
