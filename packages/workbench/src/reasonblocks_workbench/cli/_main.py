"""Implements the command `reasonblocks`: runs a command and turns any error into one line and an exit code.

Other packages add commands by entry points of the group `reasonblocks.commands`. The target of an entry point is a
function whose parameters are the command's options as typer reads them, or a `typer.Typer` with subcommands; a function
returns the exit code. It is loaded only when its command or the list of all commands is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from reasonblocks import __version__
from reasonblocks.exceptions import ConfigError, ReasonBlocksError
from reasonblocks.util.extras import folder_of

from ._fault import UserFault
from .output import OK, PROBLEM, USAGE, Bar, clean, printable, say, warn, warnings_once

INTERRUPTED = 130
"""The exit code that a shell reports for a program ended by Ctrl-C."""
COMPLETE = "_REASONBLOCKS_COMPLETE"
"""The variable by which a shell asks for completions."""
GROUP = "reasonblocks.commands"
PLUGINS = {"keys": "reasonblocks-server", "serve": "reasonblocks-server"}
"""Our distributions, by the commands that they add."""
COMMANDS: Mapping[str, tuple[str, str]] = {
    "replay": ("_replay:replay", "Show what steering would have done in recorded runs."),
    "report": (
        "_report:report",
        "Write runs as an HTML page: states, difficulty, monitors, and what the agent was told.",
    ),
    "explain": ("_explain:explain", "Say why an agent is told something after a step of a recorded run, or why not."),
    "watch": ("_watch:watch", "Show runs live, while they are recorded."),
    "calibrate": ("_calibrate:calibrate", "Fit the level of difficulty to your agent's recorded runs."),
    "patterns": ("_patterns:patterns", "Manage, search and check the patterns that agents are given."),
    "learn": ("_learn:learn", "Propose patterns from your agent's finished runs."),
    "memory": ("_memory:memory", "List, search and forget the notes of agents about codebases; serve them to agents."),
    "profile": ("_profile:profile", "Show, reset or export the agents' profiles."),
    "doctor": ("_doctor:doctor", "Show what is installed and which backends are in use."),
}
"""The module and the function or `Typer` of each command, and its line in the list."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 a problem, 2 usage. Never raises for a user's error."""
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:  # it is None if the shell has closed it
            sys.stdout.flush()
        return code
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as done:
        if isinstance(done.code, str):
            warn(f"reasonblocks: {done.code}")
        return done.code if isinstance(done.code, int) else PROBLEM if done.code else OK
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "reasonblocks"
        message = printable(error.format_message()).rstrip(".").replace("Value error, ", "", 1)  # a prefix of pydantic
        warn(f"{path}: {message} (see {path} --help)")
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it
        _drop_output()
        return OK
    except MemoryError:
        print("reasonblocks: out of memory", file=sys.stderr)
        return PROBLEM
    except (ReasonBlocksError, OSError) as error:
        if isinstance(error, UserFault):
            print("\n".join(map(clean, error.traceback.splitlines())), file=sys.stderr)
        if isinstance(error, OSError):  # after a full disk, flushing the buffer would fail again at exit
            _drop_output()
        print(f"reasonblocks: {printable(str(error))}", file=sys.stderr)
        return USAGE if isinstance(error, ConfigError) else PROBLEM


def _run(argv: list[str]) -> int:
    command = command_of(app, "reasonblocks")
    if COMPLETE in os.environ:
        command.main(argv, prog_name="reasonblocks")
    with command.make_context("reasonblocks", argv) as context, warnings_once(Bar(total=0, active=False)):
        code: int = command.invoke(context)
    return code


def command_of(target: object, name: str) -> Any:
    """Return the command that typer makes of a function or of a `Typer`.

    Its help is plain text: rich would cut long names of options in a terminal of 80 columns.
    """
    if not isinstance(target, typer.Typer):
        if not callable(target):
            raise TypeError(f"{target!r} is no function and no Typer")
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    target.rich_markup_mode = None
    for one in target.registered_commands:
        if one.cls in (None, TyperCommand):
            one.cls = OneCommand
    command: Any = typer.main.get_command(target)
    command.name = name
    for each in [command, *getattr(command, "commands", {}).values()]:
        each.short_help = each.short_help or (each.help or "").partition("\n\n")[0]
    return command


class OneCommand(TyperCommand):
    """A command whose help has a section for each group of options, and whose usage errors all name it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            vars(error)["ctx"] = getattr(error, "ctx", None) or ctx
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                if each.param_type_name == "argument":  # typer adds its type in Python
                    record = each.metavar or each.name.upper(), record[1]
                title = "Arguments" if each.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(each, "rich_help_panel", None) or title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Commands(TyperGroup):
    """The commands of `reasonblocks`: each is imported when it is run, those of other packages also to list them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, short_help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in COMMANDS:
            module, _, target = COMMANDS[name][0].partition(":")
            self.add_command(command_of(getattr(import_module(f".{module}", __package__), target), name))
        else:  # only then, because the search reads the metadata of every distribution
            self._add_found(name)
            if name not in self.commands and (reason := _missing(name)):
                warn(f"reasonblocks: {reason}")
                raise typer.Exit(USAGE)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        self._add_found(None)
        return super().list_commands(ctx)

    def _add_found(self, wanted: str | None) -> None:
        """Add the commands of other packages; if `wanted` is the name of one of them, only that one.

        A command that is already there or cannot be added is skipped with a warning.
        """
        found = list(_free())
        for point in [point for point in found if point.name == wanted] or found:
            try:
                self.add_command(command_of(point.load(), point.name))
            except MemoryError:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001 - code of another package
                reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                warn(f"reasonblocks: the command {point.name!r} of {_owner(point)} is left out: {reason}")


def _free() -> Iterator[EntryPoint]:
    """Yield one entry point for each name; a name that is taken is skipped with a warning."""
    seen = dict.fromkeys(COMMANDS, "reasonblocks-workbench")
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, _owner(point))):
        if point.name in seen:
            warn(f"reasonblocks: the command {point.name!r} of {_owner(point)} is left out: {seen[point.name]} has it")
        else:
            seen[point.name] = _owner(point)
            yield point


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _missing(name: str) -> str | None:
    """Return the error for a missing command of ours, with the command that installs it."""
    if name not in PLUGINS or any(point.name == name for point in entry_points(group=GROUP)):
        return None
    needed = PLUGINS[name]
    return (
        f"the command {name!r} is part of {needed}, which is not installed; in a clone of ReasonBlocks: "
        f"pip install ./packages/core ./packages/workbench {folder_of(needed)}"
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"reasonblocks {__version__}")
        raise typer.Exit


app = typer.Typer(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback()
def reasonblocks(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    """Steers tool-calling agents."""


def _drop_output() -> None:
    """Redirect stdout to the null device, so that the flush at exit cannot fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
