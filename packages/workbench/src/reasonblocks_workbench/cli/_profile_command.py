"""Implements `reasonblocks profile show | reset | export`: how patient each agent's finished runs make the next one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from reasonblocks.util.files import PROFILES

from .files import in_home, placed
from .options import FlagError
from .output import OK, PROBLEM, Parsers, Table, numbered, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.backends.profiles import ProfileFile, Row


NAMING = ("agent", "org", "task-profile")
"""The options that name agents."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "profile",
        help="show, reset or export the agents' profiles",
        description="Manages the profiles of agents: how often each rung of patience was reached in their newest "
        "finished runs, and how often a text would have been needless. "
        "A client with profile='auto', or the path of a file, writes them.",
        allow_abbrev=False,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add(subcommands, "show", _show, "show the patience of each agent's next run, and the counts behind it")
    _add(subcommands, "reset", _reset, "forget the runs of agents")
    _add(subcommands, "export", _export, "write the profiles to a new file, for profile= and `replay --profile`")


def _add(commands: Parsers, name: str, command: object, help: str) -> None:
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
    parser.add_argument("--file", metavar="PATH", help=f"the file ({in_home(PROFILES)})")
    parser.add_argument("--agent", metavar="NAME", help="only this agent")
    parser.add_argument("--org", metavar="ORG", help="only agents of this org")
    parser.add_argument("--task-profile", metavar="NAME", help="only this task profile")
    if name == "show":
        parser.add_argument("--json", action="store_true", help="print one JSON object per agent, nothing else")
    if name == "reset":
        parser.add_argument("--all", action="store_true", help="forget every agent")
    if name == "export":
        parser.add_argument("--out", required=True, metavar="FILE", help="the file to write; it must not exist")
    parser.set_defaults(command=command)


def _show(arguments: argparse.Namespace) -> int:
    file, rows = _found(arguments)
    if not rows:
        return _none(arguments, file)
    for row in rows:
        described = _described(file, row)
        if arguments.json:
            say(json.dumps(described))
        else:
            show(_table(row, described))
    return OK


def _described(file: ProfileFile, row: Row) -> dict[str, object]:
    """Return the agent with the patience of its next run, and what its runs have counted of each rung."""
    from reasonblocks.monitors.patience import RUNGS, share_of
    from reasonblocks.monitors.profile import patience_of, totals_of

    runs = file.read(row[:3], "")
    counted = [
        {
            "rung": rung.name,
            "reached": reached,
            "needless": needless,
            "share": round(share_of(reached, needless, rung), 3),
        }
        for rung, (reached, needless) in zip(RUNGS, totals_of(runs), strict=True)
    ]
    return {**row._asdict(), "judged_by": patience_of(runs).name, "rungs": counted}


def _table(row: Row, described: dict[str, object]) -> Table:
    counted = described["rungs"]
    assert isinstance(counted, list)
    return Table(
        title=f"{row.agent_name} ({row.org_id}, {row.task_profile}): {row.runs} runs, {described['judged_by']}",
        head=("dead steps", "reached", "needless", "share, with its prior"),
        rows=[(one["rung"], str(one["reached"]), str(one["needless"]), f"{one['share']:.2f}") for one in counted],
    )


def _reset(arguments: argparse.Namespace) -> int:
    if not (arguments.all or arguments.agent or arguments.org or arguments.task_profile):
        raise FlagError("--agent", "name an agent, an org or a task profile, or give --all")
    file, rows = _found(arguments)
    if not rows:
        return _none(arguments, file)
    for row in rows:
        file.drop(row[:3])
        say(f"forgot {row.runs} runs of {row.agent_name} ({row.org_id}, {row.task_profile})")
    return OK


def _export(arguments: argparse.Namespace) -> int:
    file, rows = _found(arguments)
    if not rows:
        return _none(arguments, file)
    file.copy_to(arguments.out, [row[:3] for row in rows])
    say(f"{arguments.out}: {len(rows)} agents, {sum(row.runs for row in rows)} runs")
    return OK


def _found(arguments: argparse.Namespace) -> tuple[ProfileFile, list[Row]]:
    """Return the file, and the agents that the options name."""
    from reasonblocks.backends.profiles import ProfileFile

    file = ProfileFile(placed(arguments.file, PROFILES, "--file PATH"))
    wanted = (arguments.org, arguments.agent, arguments.task_profile)
    return file, [
        row for row in file.agents() if all(name in (None, value) for name, value in zip(wanted, row[:3], strict=True))
    ]


def _none(arguments: argparse.Namespace, file: ProfileFile) -> int:
    """Report that no agent is found. To show none is no problem, unless an agent or a file was named."""
    if known := len(file.agents()):
        given = [(name, getattr(arguments, name.replace("-", "_"))) for name in NAMING]
        named = " ".join(f"--{name} {value!r}" for name, value in given if value is not None)
        found = f"{file.path} has no agent with {named}; without that, it has {numbered(known, 'agent')}"
    elif arguments.file is not None and not Path(file.path).exists():
        found = f"there is no file {file.path}; --file must be the one that a client's profile= names"
    else:
        warn(f"reasonblocks profile: {file.path} has no profile yet; a client with profile='auto' adds one when a run "
             "of an agent with an agent_name finishes")  # fmt: skip
        return OK if arguments.command is _show else PROBLEM
    warn(f"reasonblocks profile: {found}")
    return PROBLEM
