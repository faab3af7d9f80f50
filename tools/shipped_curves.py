"""Prints what the shipped embedders' cosines are worth, fitted to recorded runs: the numbers that stand in the code."""

from __future__ import annotations

import argparse
import json
import sys

from reasonblocks.backends.embed import HashEmbedder, StaticEmbedder
from reasonblocks.calibration._similarity import Texts, fit_curves
from reasonblocks.exceptions import RecordError
from reasonblocks.traces import read_runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="RUNS", help="files that `reasonblocks replay` reads")
    texts = Texts()
    for path in parser.parse_args().paths:
        for run in read_runs(path):
            if isinstance(run, RecordError):
                sys.exit(str(run))
            # Sources are named KIND_WHICH: "tau_retail" and "tau_airline" serve customers alike.
            texts.add(run, kind=(run.source or "").partition("_")[0])
    for embedder in (StaticEmbedder(), HashEmbedder()):
        fit = fit_curves(embedder, texts)
        for tier in fit.queries:
            told = {
                "embedder": embedder.id,
                "tier": tier,
                "points": fit.curves.of(tier).points,
                "queries": fit.queries[tier],
                "kinds": fit.groups[tier],
                "reached": {str(at): round(share, 4) for at, share in fit.reached[tier].items()},
            }
            sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
