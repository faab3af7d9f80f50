"""Implements `reasonblocks calibrate`: fits the level of difficulty to recorded runs."""

from __future__ import annotations

import argparse
import json

from reasonblocks.exceptions import ConfigError

from .files import STDOUT, add_format, runs_of, write
from .output import OK, PROBLEM, Parsers, Table, say, show, warn


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="fit the level of difficulty to your agent's recorded runs",
        description="Fits the difficulty that is normal to runs of one agent, whatever their outcome. How patient the "
        "monitors are is learned by profiles instead. FILE is any file that `replay` reads.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks calibrate [OPTIONS] FILE... --out FILE.toml"
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--out", required=True, metavar="FILE.toml", help="the file to write, for calibration=; - prints it"
    )
    add_format(parser)
    parser.add_argument("--json", action="store_true", help="print the level as one JSON object")
    parser.set_defaults(command=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    """Fit and write; return 1 if no run with a step could be read."""
    from reasonblocks.monitors.calibration import SHIPPED_LEVEL, as_toml

    from ..calibration.level import fit_level

    if arguments.json and arguments.out == STDOUT:
        raise ConfigError("--out", STDOUT, "with --json name a file: both would go to stdout")
    found = [run for run in runs_of(arguments.files, arguments.format) if run.steps]
    if not found:
        warn("reasonblocks calibrate: no run with a step could be read")
        return PROBLEM
    level = fit_level(found)
    sources = sorted({run.source for run in found if run.source})
    counted = f"{len(found)} runs" + (f" of {', '.join(sources)}" if sources else "")
    write(arguments.out, as_toml(level, f"Made by `reasonblocks calibrate`: {counted}."))
    if arguments.json:
        pair = {"calibrated": level.mean, "shipped": SHIPPED_LEVEL.mean}
        say(json.dumps({"out": arguments.out, "runs": len(found), "sources": sources, "difficulty_mean": pair}))
    elif arguments.out != STDOUT:
        row = ("difficulty_mean", f"{level.mean:.3f}", f"{SHIPPED_LEVEL.mean:.3f}")
        show(Table(title=f"{arguments.out}: {counted}", head=("", "calibrated", "shipped"), rows=[row]))
    return OK
