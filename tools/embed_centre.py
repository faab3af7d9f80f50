"""Makes the row that texts of all agents share, out of recorded runs: what `build_embed.py` takes from every row."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy
from build_embed import CENTRE, PER_UNIT, UNKNOWN, embeddings, source, vocabulary, weights
from numpy.typing import NDArray

from reasonblocks.backends.embed._tokenizer import Tokenizer
from reasonblocks.exceptions import RecordError
from reasonblocks.util.text import clip
from reasonblocks_workbench.traces import RecordedRun, read_runs

PER_TASK = 8
"""Runs that count of one task, the first: a task that was run a hundred times is still one."""
PER_RUN = 12
"""Steps that count of a run, spread over its length."""
ORIGIN = (
    "The mean of the model's rows over the pieces of recorded thoughts and observations, digits and marks weighted as "
    "build_embed.py does; the mean of the kinds of agents named, each counting alike. In whole numbers per unit."
)
Rows = NDArray[numpy.float64]


def kind(run: RecordedRun) -> str:
    """Sources are named KIND_WHICH: "tau_retail" and "tau_airline" serve customers alike."""
    return (run.source or "").partition("_")[0]


def runs(paths: Iterable[str]) -> Iterable[RecordedRun]:
    """Ends the program with a reason when a file cannot be read."""
    for path in paths:
        for run in read_runs(path):
            if isinstance(run, RecordError):
                sys.exit(str(run))
            yield run


def counted(pieces: Sequence[str], found: Iterable[RecordedRun]) -> dict[str, Rows]:
    """How often each piece stands in each kind's texts."""
    tokenizer = Tokenizer({piece: at for at, piece in enumerate(pieces)})
    counts: dict[str, Rows] = {}
    seen: dict[tuple[str, str], int] = {}
    for run in found:
        task = (run.source or "", run.task_key)
        seen[task] = seen.get(task, 0) + 1
        if seen[task] <= PER_TASK:
            own = counts.setdefault(kind(run), numpy.zeros(len(pieces)))
            for step in run.steps[:: -(-len(run.steps) // PER_RUN) or 1]:
                numpy.add.at(own, tokenizer.ids(clip(step.scored_text)), 1)
    return counts


def means(exact: NDArray[numpy.float32], pieces: Sequence[str], counts: Mapping[str, Rows]) -> dict[str, Rows]:
    """The mean row of each kind."""
    known = weights(pieces).astype(numpy.float64)
    known[pieces.index(UNKNOWN)] = 0
    return {name: (own * known) @ exact / (own @ known) for name, own in sorted(counts.items()) if own @ known}


def whole(rows: Iterable[Rows]) -> list[int]:
    """Their mean in whole numbers."""
    return [int(value) for value in numpy.rint(numpy.mean(list(rows), axis=0) * PER_UNIT)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="place", type=Path, required=True, metavar="PATH", help="folder, zip or wheel")
    parser.add_argument("--out", type=Path, default=CENTRE, metavar="FILE", help="beside the tools, by default")
    parser.add_argument("paths", nargs="+", metavar="RUNS", help="files that `reasonblocks replay` reads")
    given = parser.parse_args()
    model = source(given.place)
    pieces = vocabulary(model["tokenizer.json"])
    found = means(embeddings(model["model.safetensors"]), pieces, counted(pieces, runs(given.paths)))
    told = {"origin": ORIGIN, "kinds": sorted(found), "per_unit": PER_UNIT, "row": whole(found.values())}
    given.out.write_text(json.dumps(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
