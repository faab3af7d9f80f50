"""`python -m reasonblocks_testing parity`: compares an adapter's decisions and guidance with the core's."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module

from reasonblocks.exceptions import ConfigError

from ._golden import against_core, limits_of
from ._parity import ParityRun
from ._parity_runs import long_runs, recorded_runs
from .harness import Harness

MAX_SHOWN = 20
"""The most differences of one run that are printed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if nothing differs, 1 if something does, and 2 if there is nothing to compare."""
    parser = _parser()
    given = parser.parse_args(argv)
    harness = _harness(given.harness, parser)
    modes = tuple(dict.fromkeys(given.mode or harness.modes))
    if unknown := [mode for mode in modes if mode not in harness.modes]:
        parser.error(f"--mode {unknown[0]!r:.80} is none of the harness's: {', '.join(harness.modes)}")
    runs = _recorded(given.runs) if given.runs else list(long_runs())
    if not runs:
        parser.error(f"{', '.join(given.runs)} has no run that can be compared")
    return _compare(harness, runs, modes)


def _compare(harness: Harness, runs: Sequence[ParityRun], modes: Sequence[str]) -> int:
    entries = differences = 0
    declared: Counter[str] = Counter()
    for result in against_core(harness, runs, modes):
        found = result.differences
        print(f"{result.run}, {result.mode}: {result.entries} entries, {len(found)} differences", flush=True)
        for text in found[:MAX_SHOWN]:
            print(f"  {text}")
        if len(found) > MAX_SHOWN:
            print(f"  and {len(found) - MAX_SHOWN} more")
        entries, differences = entries + result.entries, differences + len(found)
        declared.update(result.declared)
    for field, reason in limits_of(harness).items():
        print(f"{field}: {declared[field]} declared differences ({reason})")
    print(f"{entries} entries compared with the core's, {differences} undeclared differences")
    return 1 if differences else 0


def _recorded(paths: Sequence[str]) -> list[ParityRun]:
    found = [run for path in paths for run in recorded_runs(path)]
    for problem in found:
        if isinstance(problem, str):
            print(problem, file=sys.stderr)
    return [run for run in found if isinstance(run, ParityRun)]


def _harness(target: str, parser: argparse.ArgumentParser) -> Harness:
    """Import the harness `package.module:NAME`; instantiate it if it is a class."""
    module, _, name = target.partition(":")
    if not module or not name:
        parser.error(f"{target!r:.200} is not MODULE:NAME, as in my_package.tests.harness:MyHarness")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as exc:
        parser.error(f"{target!r:.200} cannot be imported ({exc}): run this where `import {module}` works")
    harness: Harness = found() if isinstance(found, type) else found
    missing = [name for name in ("modes", "caps", "run") if not hasattr(harness, name)]
    if missing:
        parser.error(f"{target!r:.200} is no harness: it has no {missing[0]!r}")
    try:
        limits_of(harness)
    except ConfigError as exc:
        parser.error(str(exc))
    return harness


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reasonblocks_testing", description="Checks for adapters.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    parity = commands.add_parser(
        "parity",
        help="compare an adapter with the core, entry by entry",
        description="Runs the harness and the hand-written loop through the same runs, and compares every entry of the"
        " step log, the guidance that the model read, and the final entry. Exits with 1 if something differs.",
    )
    parity.add_argument("harness", metavar="MODULE:NAME", help="the harness of the conformance suite, or its class")
    parity.add_argument("--mode", action="append", help="one of the harness's modes (all); may be repeated")
    parity.add_argument(
        "--runs",
        action="append",
        metavar="FILE",
        help="recorded runs, as `reasonblocks replay` reads them (the long run of the package); may be repeated",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
