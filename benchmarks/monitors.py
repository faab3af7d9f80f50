"""Measures the monitors on recorded runs with outcomes: were their words needed, and do they tell failing runs from
successful ones? --columns explains every column.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ReasonBlocksError

if TYPE_CHECKING:
    from _monitors.configurations import Configuration
    from _monitors.sources import Source
    from _monitors.table import Table

CONFIGURATION = (
    "`default`, `length`, `repeat`, `stale`, a calibration's TOML file, another checkout, or a detector's .py with "
    "score and fires"
)


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
    measured.add_argument("--own-level", action="store_true", help="also by the level of 20, 50, all other runs")
    options.add_argument(
        "--vs", metavar="WHAT", action="append", default=[], help=f"beside it, with paired differences: {CONFIGURATION}"
    )
    options.add_argument("--cost", action="store_true", help="what a step costs, in pairs with each checkout of --vs")
    chosen = options.add_mutually_exclusive_group()
    chosen.add_argument("--sources", default="", metavar="A,B", help="only these")
    chosen.add_argument("--open", action="store_true", help="only the sources that may be looked at during development")
    chosen.add_argument("--closed", action="store_true", help="only the others, once everything is chosen")
    shown = options.add_mutually_exclusive_group()
    shown.add_argument("--excerpts", type=int, metavar="N", help="no figures: N random interventions, for reading")
    shown.add_argument("--missed", type=int, metavar="N", help="the same of troubles that got no word in time")
    options.add_argument("--seed", type=int, default=1, metavar="N", help="another draw of excerpts (default 1)")
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


def chosen(given: argparse.Namespace) -> tuple[Source, ...]:
    """The sources that the options ask for."""
    from _monitors.sources import CLOSED, read_sources

    only, without = list(filter(None, given.sources.split(","))), frozenset[str]()
    if given.closed:
        only = sorted(CLOSED)
    elif given.open:
        without = CLOSED
    sources = read_sources(given.paths, only=only, without=without, most=given.runs)
    if not sources:
        sys.exit("no recorded run with an outcome was found")
    return sources


def measured(given: argparse.Namespace) -> Iterator[Table]:
    """The tables of the configuration, and of others beside it."""
    from _monitors.baselines import STALE, stale_in_a_row
    from _monitors.configurations import named
    from _monitors.cost import cost_table
    from _monitors.hindsight_tables import compared_table, monitors_table, needed_table, troubles_table
    from _monitors.measure import difference, measure
    from _monitors.own_levels import own_level_table
    from _monitors.staleness import stale_runs
    from _monitors.table import difference_table, tables
    from _monitors.trail import side_by_side

    sources = chosen(given)
    stale = [side_by_side(stale_runs, source.runs, given.workers) for source in sources]
    what = configuration(given)
    trails = {"this": what.trails(sources, given.workers)}
    trails[STALE] = [[stale_in_a_row(flags) for flags in of_runs] for of_runs in stale]
    trails |= {name: named(name).trails(sources, given.workers) for name in given.vs}
    figures = {name: measure(sources, stale, found, given.boot) for name, found in trails.items()}
    yield needed_table(figures["this"].needed)
    yield troubles_table(sources, stale, trails["this"])
    yield monitors_table(sources, stale, trails["this"])
    yield from tables(figures["this"], what.about)
    yield compared_table(figures)
    for name in given.vs:
        yield difference_table(difference(figures["this"], figures[name]), "this", name)
        if given.cost and Path(name).is_dir():
            yield cost_table(sources, name)
    if given.own_level:
        yield own_level_table(
            sources, stale, named("default").trails(sources, given.workers), given.boot, given.workers
        )


def read(given: argparse.Namespace) -> None:
    """Print random interventions of the configuration, or troubles that it missed."""
    from _monitors.excerpts import as_json, as_markdown, excerpts, missed
    from _monitors.staleness import stale_runs

    sources = chosen(given)
    trails = configuration(given).trails(sources, given.workers)
    if given.missed:
        trails = missed([stale_runs(source.runs) for source in sources], trails)
    found = excerpts(sources, trails, given.excerpts or given.missed, given.seed)
    for line in as_json(found) if given.json else as_markdown(found, given.seed):
        print(line)


def meanings() -> dict[str, str]:
    from _monitors.hindsight import MEANINGS

    from reasonblocks_workbench.calibration._columns import COLUMNS

    return {**MEANINGS, **COLUMNS}


def show(shown: Iterator[Table], given: argparse.Namespace) -> None:
    from _monitors.table import json_lines, markdown, text

    if given.markdown:
        print(f"# What recorded runs say of the monitors\n\nMade by `./dev bench monitors {' '.join(sys.argv[1:])}`.\n")
        print("\n".join(f"- `{name}`: {meaning}" for name, meaning in meanings().items()) + "\n")
    form = json_lines if given.json else markdown if given.markdown else text
    for table in shown:
        for line in form(table):
            print(line, flush=True)


def main() -> None:
    options = parser()
    given = options.parse_args()
    if given.cost and not any(Path(name).is_dir() for name in given.vs):
        options.error("--cost compares with a checkout: name one with --vs")
    if given.columns:
        print("\n".join(f"{name:17} {meaning}" for name, meaning in meanings().items()))
    elif not given.paths:
        print("nothing is measured: name files of recorded runs", file=sys.stderr)
    else:
        try:
            read(given) if given.excerpts or given.missed else show(measured(given), given)
        except (ReasonBlocksError, ImportError, OSError) as error:
            sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
