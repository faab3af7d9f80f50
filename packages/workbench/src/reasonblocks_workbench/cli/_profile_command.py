"""Implements `reasonblocks profile show | reset | export`: what is usual for each agent, from its finished runs."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from reasonblocks.util.files import PROFILES

from .files import in_home, placed
from .options import FlagError
from .output import OK, PROBLEM, Parsers, Table, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.backends.profiles import ProfileFile, Row


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "profile",
        help="show, reset or export the agents' own levels",
        description="Manages the profiles of agents: what is usual in their newest finished runs, without outcomes. "
        "A client with profile='auto', or the path of a file, writes them.",
        allow_abbrev=False,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add(subcommands, "show", _show, "show each agent's runs, and its thresholds beside the shipped ones")
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
        return _none(file)
    for row in rows:
        described = _described(file, row)
        if arguments.json:
            say(json.dumps(described))
        else:
            show(_table(row, described))
    return OK


def _described(file: ProfileFile, row: Row) -> dict[str, object]:
    """Return the agent with its level, and each threshold as shipped and as its own."""
    from reasonblocks.engine.own_level import RAISED, AgentProfile, own_level, thresholds_of
    from reasonblocks.monitors.calibration import shipped

    known = {name: value for name, value in thresholds_of(shipped()).items() if name in RAISED}
    own = own_level(shipped(), AgentProfile(runs=file.read(row[:3], "")))
    return {
        **row._asdict(),
        "judged_by": own.name if own else "shipped",
        "thresholds": {name: [value, own.thresholds[name] if own else value] for name, value in known.items()},
        "difficulty_mean": [shipped().level.mean, own.difficulty_mean if own else shipped().level.mean],
    }


def _table(row: Row, described: dict[str, object]) -> Table:
    thresholds = described["thresholds"]
    assert isinstance(thresholds, dict)
    pairs = {**thresholds, "difficulty_mean": described["difficulty_mean"]}
    return Table(
        title=f"{row.agent_name} ({row.org_id}, {row.task_profile}): {row.runs} runs, {described['judged_by']}",
        head=("", "shipped", "own"),
        rows=[(name, f"{shipped:.3f}", f"{own:.3f}") for name, (shipped, own) in pairs.items()],
    )


def _reset(arguments: argparse.Namespace) -> int:
    if not (arguments.all or arguments.agent or arguments.org or arguments.task_profile):
        raise FlagError("--agent", "name an agent, an org or a task profile, or give --all")
    file, rows = _found(arguments)
    if not rows:
        return _none(file)
    for row in rows:
        file.drop(row[:3])
        say(f"forgot {row.runs} runs of {row.agent_name} ({row.org_id}, {row.task_profile})")
    return OK


def _export(arguments: argparse.Namespace) -> int:
    file, rows = _found(arguments)
    if not rows:
        return _none(file)
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


def _none(file: ProfileFile) -> int:
    warn(f"reasonblocks profile: {file.path} has no such agent")
    return PROBLEM
