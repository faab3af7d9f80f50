"""Writes the calibration that the core ships, fitted from nothing to files of recorded runs with outcomes."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from reasonblocks.exceptions import RecordError
from reasonblocks.monitors.calibration import SHIPPED, comments, monitors_toml
from reasonblocks_workbench.calibration import Observed, fit, observed
from reasonblocks_workbench.traces import read_runs

COMMAND = "./dev shipped_calibration"


def read(paths: Iterable[str]) -> Iterator[Observed]:
    """The runs with an outcome, of all files. A malformed one ends it: the numbers are to be made again."""
    for path in paths:
        for run in read_runs(path):
            if isinstance(run, RecordError):
                sys.exit(str(run))
            elif run.steps and run.has_outcome:
                yield observed(run)


def said(runs: Sequence[Observed], paths: Sequence[str]) -> str:
    """How the numbers were made."""
    counts = Counter(run.source for run in runs)
    stopped = sorted({run.source for run in runs if run.stopped_at_success})
    steps, failed = sum(len(run.calm) for run in runs), sum(run.failed for run in runs)
    lines = [
        f"Fitted from nothing to {len(runs)} recorded runs with {steps} steps, {failed} of them failures, "
        f"by scikit-learn {version('scikit-learn')}:",
        *(f"  {name}: {count}" for name, count in sorted(counts.items())),
        f"Runs that were stopped at their success ({', '.join(stopped) or 'none'}) count for the weights, not for the",
        "thresholds; a source of one outcome is compared with nothing and counts for neither.",
        "Made by:",
        "  " + " \\\n    ".join([COMMAND, *paths]),
        "The level of difficulty is the scorer's: reasonblocks.monitors.calibration.SHIPPED_LEVEL.",
    ]
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", nargs="+", metavar="RUNS", help="files that `reasonblocks replay` reads")
    paths = options.parse_args().paths
    runs = list(read(paths))
    SHIPPED.write_text(comments(said(runs, paths)) + monitors_toml(fit(runs)), encoding="utf-8")


if __name__ == "__main__":
    main()
