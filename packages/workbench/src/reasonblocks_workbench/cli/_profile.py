"""Implements `reasonblocks profile show | reset | export`: how patient each agent's finished runs make the next one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from reasonblocks.util.files import PROFILES
from reasonblocks.util.text import count_noun

from .files import home_path, in_home
from .options import FlagError, expand_options
from .output import OK, PROBLEM, Table, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.backends.profiles import ProfileFile, Row


profile = Typer(
    add_completion=False,
    help="Manage the profiles of agents: how often each rung of patience was reached in their newest finished runs,"
    " and how often a text would have been needless. A client with profile='auto', or the path of a file, writes them.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options that name a file of profiles and agents in it."""

    path: Annotated[str | None, Option("--file", metavar="PATH", help=f"the file ({in_home(PROFILES)})")] = None
    agent: Annotated[str | None, Option(metavar="NAME", help="only this agent")] = None
    org: Annotated[str | None, Option(metavar="ORG", help="only agents of this org")] = None
    task_profile: Annotated[str | None, Option(metavar="NAME", help="only this task profile")] = None

    def open(self) -> ProfileFile:
        from reasonblocks.backends.profiles import ProfileFile

        return ProfileFile(home_path(self.path, PROFILES, "--file PATH"))

    def rows(self, file: ProfileFile) -> list[Row]:
        """Return the agents that the options name."""
        wanted = (self.org, self.agent, self.task_profile)
        return [
            row
            for row in file.agents()
            if all(name in (None, value) for name, value in zip(wanted, row[:3], strict=True))
        ]

    def no_row(self, file: ProfileFile) -> int:
        """Report that no agent is found, and return the exit code: a file without one, if not named, is no problem."""
        if known := len(file.agents()):
            given = (("--agent", self.agent), ("--org", self.org), ("--task-profile", self.task_profile))
            named = " ".join(f"{flag} {value!r}" for flag, value in given if value is not None)
            found = f"{file.path} has no agent with {named}; without that, it has {count_noun(known, 'agent')}"
        elif self.path is not None and not Path(file.path).exists():
            found = f"there is no file {file.path}; --file must be the one that a client's profile= names"
        else:
            warn(f"reasonblocks profile: {file.path} has no profile yet; a client with profile='auto' adds one when a "
                 "run of an agent with an agent_name finishes")  # fmt: skip
            return OK
        warn(f"reasonblocks profile: {found}")
        return PROBLEM


@profile.command("show")
@expand_options
def show_profiles(
    wanted: Wanted,
    as_json: Annotated[bool, Option("--json", help="print one JSON object per agent, nothing else")] = False,
) -> int:
    """Show the patience of each agent's next run, and the counts behind it."""
    file = wanted.open()
    rows = wanted.rows(file)
    for row in rows:
        described = _described(file, row)
        if as_json:
            say(json.dumps(described))
        else:
            show(_table(row, described))
    return OK if rows else wanted.no_row(file)


@profile.command("reset")
@expand_options
def reset(wanted: Wanted, every: Annotated[bool, Option("--all", help="forget every agent")] = False) -> int:
    """Forget the runs of agents."""
    if not (every or wanted.agent or wanted.org or wanted.task_profile):
        raise FlagError("--agent", "name an agent, an org or a task profile, or give --all")
    file = wanted.open()
    rows = wanted.rows(file)
    for row in rows:
        file.drop(row[:3])
        say(f"forgot {count_noun(row.runs, 'run')} of {row.agent_name} ({row.org_id}, {row.task_profile})")
    return OK if rows else wanted.no_row(file) or PROBLEM


@profile.command("export")
@expand_options
def export(
    wanted: Wanted, out: Annotated[str, Option(metavar="FILE", help="the file to write; it must not exist")]
) -> int:
    """Write the profiles to a new file, for profile= and `replay --profile`."""
    file = wanted.open()
    rows = wanted.rows(file)
    if not rows:
        return wanted.no_row(file) or PROBLEM
    file.copy_to(out, [row[:3] for row in rows])
    say(f"{out}: {count_noun(len(rows), 'agent')}, {count_noun(sum(row.runs for row in rows), 'run')}")
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
    counted, runs = described["rungs"], count_noun(row.runs, "run")
    assert isinstance(counted, list)
    return Table(
        title=f"{row.agent_name} ({row.org_id}, {row.task_profile}): {runs}, {described['judged_by']}",
        head=("dead steps", "reached", "needless", "share, with its prior"),
        rows=[(one["rung"], str(one["reached"]), str(one["needless"]), f"{one['share']:.2f}") for one in counted],
    )
