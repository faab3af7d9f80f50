"""Implements `reasonblocks calibrate`: fits the monitors to recorded runs and reports how well the result does."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ConfigError

from .files import STDOUT, add_format, runs_of, write
from .options import OPTIONS
from .output import OK, PROBLEM, Parsers, Table, columns, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.monitors.builtin import Calibration

    from ..calibration import Observed
    from ..calibration.statistics import Interval
    from ..traces import RecordedRun

FALSE_ALARMS = 0.085
"""The default of `fit`, copied: importing it would import the monitors for every `--help`."""


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="fit the monitors to your agent's recorded runs",
        description="Fits thresholds, weights and the difficulty level to finished runs of one agent with known "
        "outcomes, starting from the shipped numbers, and reports how well the result does. Of runs without outcomes "
        "it fits the thresholds and the level alone. FILE is any file that `replay` reads.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks calibrate [OPTIONS] FILE... --out FILE.toml"
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument(
        "--out", required=True, metavar="FILE.toml", help="the file to write, for calibration=; - prints it"
    )
    parser.add_argument(
        "--false-alarms",
        type=float,
        default=FALSE_ALARMS,
        metavar="SHARE",
        help=f"the largest share of successful runs, or of runs without outcomes, in which something may fire "
        f"({FALSE_ALARMS:g})",
    )
    add_format(parser)
    parser.add_argument("--json", action="store_true", help="print how well it does as one JSON object")
    next(option for option in OPTIONS if option.setting == "tool_roles").add_to(parser.add_argument_group("settings"))
    parser.set_defaults(command=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    """Fit and write; return 1 if no run could be read. Raises `ConfigError` for runs that cannot be fitted to."""
    from reasonblocks.options import tool_roles_of

    from ..calibration import as_toml, shipped
    from ..calibration.fitting import need_scikit_learn

    need_scikit_learn()
    if arguments.json and arguments.out == STDOUT:
        raise ConfigError("--out", STDOUT, "with --json name a file: both would go to stdout")
    found = _read(runs_of(arguments.files, arguments.format), tool_roles_of(dict(arguments.tool_roles or ())))
    if not found.runs and not found.unlabelled:
        warn("reasonblocks calibrate: no run could be read")
        return PROBLEM
    for line in found.notes:
        warn(f"reasonblocks calibrate: {line}")
    made, evaluation = _fitted(found, shipped(), arguments.false_alarms)
    write(arguments.out, as_toml(made, evaluation.header(arguments.false_alarms)))
    if arguments.json:
        say(json.dumps(evaluation.as_dict(arguments.out)))
    elif arguments.out != STDOUT:
        show(evaluation.table(f"{arguments.out}: {found.counted}"))
    return OK


def _fitted(found: _Found, prior: Calibration, false_alarms: float) -> tuple[Calibration, _Evaluation | _Flagged]:
    """Fit to the runs with outcomes, or to all if there is none."""
    from ..calibration import fit
    from ..calibration.compare import compared, flagged  # needs numpy
    from ..calibration.fitting import check, fit_unlabelled

    if not found.runs:
        made = fit_unlabelled(found.unlabelled, prior, false_alarms=false_alarms)
        return made, _Flagged(found, *flagged(found.unlabelled, prior, false_alarms=false_alarms))
    check(found.runs, false_alarms)
    made = fit(found.runs, prior, false_alarms=false_alarms, unlabelled=found.unlabelled)
    return made, _Evaluation(found, *compared(found.runs, prior, false_alarms=false_alarms))


@dataclass(slots=True)
class _Found:
    """The usable runs with and without outcomes, and how many were left out for which reason."""

    runs: list[Observed] = field(default_factory=list)
    unlabelled: list[Observed] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> int:
        return sum(run.failed for run in self.runs)

    @property
    def sources(self) -> list[str]:
        return sorted({run.source for run in (*self.runs, *self.unlabelled) if run.source})

    @property
    def counted(self) -> str:
        named = f" of {', '.join(self.sources)}" if self.sources else ""
        if not self.runs:
            return f"{len(self.unlabelled)} runs{named}, all of unknown outcome"
        return f"{len(self.runs)} runs{named}, {self.failed} failed"

    @property
    def notes(self) -> Iterator[str]:
        if self.runs and self.unlabelled:
            yield f"of unknown outcome, used for the level of difficulty alone: {len(self.unlabelled)}"
        yield from (f"left out for having {reason}: {count}" for reason, count in sorted(self.left_out.items()))


def _read(runs: Iterable[RecordedRun], roles: Mapping[str, str]) -> _Found:
    """Observe all runs, and count those that cannot be used."""
    from ..calibration import observed

    found = _Found()
    for run in runs:
        if not run.steps:
            found.left_out["no step"] += 1
        else:
            (found.runs if run.has_outcome else found.unlabelled).append(observed(run, roles))
    return found


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """The figures of the fitted and of the shipped calibration, on runs that the former was not fitted to."""

    found: _Found
    calibrated: Mapping[str, Interval]
    shipped: Mapping[str, Interval]

    def header(self, false_alarms: float) -> str:
        rows = self.table("")
        lines = [f"Made by `reasonblocks calibrate`: {self.found.counted}.", *self.found.notes]
        lines += [f"Wanted: false alarms in {false_alarms:.1%} of the successful runs at most.", "", *_ABOUT, ""]
        return "\n".join([*lines, *columns([rows.head, *rows.rows])])

    def table(self, title: str) -> Table:
        from ..calibration.compare import FIGURES

        rows = [
            (name, _shown(self.calibrated.get(name)), _shown(self.shipped.get(name)), meaning)
            for name, meaning in FIGURES.items()
        ]
        return Table(title=title, head=("figure", "calibrated", "shipped", "what it is"), rows=rows)

    def as_dict(self, out: str) -> dict[str, object]:
        return {
            "out": out,
            "runs": len(self.found.runs),
            "failed": self.found.failed,
            "unknown_outcomes": len(self.found.unlabelled),
            "sources": self.found.sources,
            "left_out": dict(self.found.left_out),
            "calibrated": {name: _numbers(interval) for name, interval in self.calibrated.items()},
            "shipped": {name: _numbers(interval) for name, interval in self.shipped.items()},
        }


@dataclass(frozen=True, slots=True)
class _Flagged:
    """The share of runs with an alarm by the fitted and the shipped calibration, if no run has an outcome."""

    found: _Found
    calibrated: float
    shipped: float

    def header(self, false_alarms: float) -> str:
        rows = self.table("")
        lines = [f"Made by `reasonblocks calibrate`: {self.found.counted}.", *self.found.notes]
        lines += [f"Wanted: alarms in {false_alarms:.1%} of the runs at most.", "", _FOLDED, ""]
        return "\n".join([*lines, *columns([rows.head, *rows.rows])])

    def table(self, title: str) -> Table:
        row = ("flagged", f"{self.calibrated:.3f}", f"{self.shipped:.3f}", "runs with an alarm")
        return Table(title=title, head=("figure", "calibrated", "shipped", "what it is"), rows=[row])

    def as_dict(self, out: str) -> dict[str, object]:
        return {
            "out": out,
            "runs": len(self.found.unlabelled),
            "unknown_outcomes": len(self.found.unlabelled),
            "sources": self.found.sources,
            "left_out": dict(self.found.left_out),
            "calibrated": {"flagged": self.calibrated},
            "shipped": {"flagged": self.shipped},
        }


_FOLDED = "Each of 5 folds of the tasks by what was fitted to the other four, beside the shipped numbers."
_ABOUT = (
    "What it is worth: each of 5 folds of the tasks by what was fitted to the other four, beside the shipped numbers;",
    "with the bounds of 95 % of bootstrap samples of the tasks.",
)


def _shown(interval: Interval | None) -> str:
    if interval is None or math.isnan(interval.point):
        return "-"
    return f"{interval.point:.3f} [{interval.low:.2f}, {interval.high:.2f}]"


def _numbers(interval: Interval) -> list[float | None]:
    """Return point, low and high, with None for undefined ones."""
    return [value if math.isfinite(value) else None for value in (interval.point, interval.low, interval.high)]
