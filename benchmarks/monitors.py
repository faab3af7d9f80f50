"""How well the monitors tell failing runs from successful ones, on recorded runs with outcomes: see --columns."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ReasonBlocksError

if TYPE_CHECKING:
    from _monitors.configurations import Configuration
    from _monitors.measure import Figures
    from _monitors.sources import Source
    from _monitors.table import Table

CONFIGURATION = "`default`, `length`, `repeat`, a calibration's TOML file, or a detector's .py with score and fires"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", nargs="*", metavar="RUNS", help="files that `reasonblocks replay` reads")
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    options.add_argument("--markdown", action="store_true", help="the tables as docs/evidence.md holds them")
    options.add_argument("--columns", action="store_true", help="say what each column is, and stop")
    measured = options.add_mutually_exclusive_group()
    measured.add_argument("--calibration", metavar="FILE", help="the library, calibrated")
    measured.add_argument("--detector", metavar="WHAT", help=f"instead of the library: {CONFIGURATION}")
    measured.add_argument("--leave-source-out", action="store_true", help="calibrate on the other sources")
    measured.add_argument("--folds", type=int, metavar="N", help="calibrate on the source's other folds of tasks")
    options.add_argument("--vs", metavar="WHAT", help=f"paired differences from {CONFIGURATION}")
    options.add_argument("--sources", default="", metavar="A,B", help="only these")
    options.add_argument("--runs", type=int, metavar="N", help="only so many runs of each source")
    options.add_argument("--boot", type=int, default=400, metavar="N", help="bootstrap samples of tasks (default 400)")
    options.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default 1)")
    return options


def configuration(given: argparse.Namespace) -> Configuration:
    """What the options ask to measure."""
    from _monitors.configurations import fitted_elsewhere, fitted_in_folds, named

    if given.leave_source_out:
        return fitted_elsewhere()
    if given.folds:
        return fitted_in_folds(given.folds)
    return named(given.calibration or given.detector or "default")


def measured(given: argparse.Namespace) -> Iterator[Table]:
    """The tables of the configuration, and of how it differs from another."""
    from _monitors.configurations import named
    from _monitors.measure import difference
    from _monitors.sources import read_sources
    from _monitors.table import difference_table, tables

    sources = read_sources(given.paths, only=list(filter(None, given.sources.split(","))), most=given.runs)
    if not sources:
        sys.exit("no recorded run with an outcome was found")
    what = configuration(given)
    one = figures(what, sources, given)
    yield from tables(one, what.about)
    if given.vs:
        other = figures(named(given.vs), sources, given)
        yield difference_table(difference(one, other), "this", given.vs)


def figures(what: Configuration, sources: Sequence[Source], given: argparse.Namespace) -> Figures:
    from _monitors.measure import measure

    return measure(sources, what.trails(sources, given.workers), given.boot)


def show(shown: Iterator[Table], given: argparse.Namespace) -> None:
    from _monitors.table import json_lines, markdown, text

    from reasonblocks.calibration._columns import COLUMNS

    if given.markdown:
        print(f"# What recorded runs say of the monitors\n\nMade by `./dev bench monitors {' '.join(sys.argv[1:])}`.\n")
        print("\n".join(f"- `{name}`: {meaning}" for name, meaning in COLUMNS.items()) + "\n")
    form = json_lines if given.json else markdown if given.markdown else text
    for table in shown:
        for line in form(table):
            print(line, flush=True)


def main() -> None:
    given = parser().parse_args()
    if given.columns:
        from reasonblocks.calibration._columns import COLUMNS

        print("\n".join(f"{name:17} {meaning}" for name, meaning in COLUMNS.items()))
    elif not given.paths:
        print("nothing is measured: name files of recorded runs", file=sys.stderr)
    else:
        try:
            show(measured(given), given)
        except (ReasonBlocksError, ImportError, OSError) as error:
            sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
