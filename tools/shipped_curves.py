"""Prints what the shipped embedders' cosines are worth, fitted to recorded runs: the numbers that stand in the code.

The model's centre was made of the same runs, so that it knows their kinds of agents, as it does not know its user's.
Texts of two kinds are therefore compared with a table whose centre is that of the other kinds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy
from build_embed import cut, embeddings, in_units, rounded, source, vocabulary
from embed_centre import counted, kind, means, runs, whole
from numpy.typing import NDArray

from reasonblocks.backends.embed import HashEmbedder, StaticEmbedder
from reasonblocks.backends.embed._static import MARKS
from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.types import Tier
from reasonblocks_workbench.calibration.similarity import (
    SEED,
    TIERS_FITTED,
    Compared,
    Texts,
    _curve,
    _embedded,
    _places,
    reached,
)

Row = dict[str, object]


class Strange:
    """The shipped model as it would be if some kinds of agents had never been seen."""

    def __init__(self, place: Path, paths: Sequence[str]) -> None:
        model = source(place)
        self._exact, self._pieces = embeddings(model["model.safetensors"]), vocabulary(model["tokenizer.json"])
        self._means = means(self._exact, self._pieces, counted(self._pieces, runs(paths)))
        self.kinds = sorted(self._means)

    def to(self, *kinds: str) -> StaticEmbedder:
        """Its centre is that of the others."""
        away = whole(mean for name, mean in self._means.items() if name not in kinds)
        rows = cut(rounded(self._exact, self._pieces, in_units(away)))
        embedder = StaticEmbedder()
        embedder._table = replace(embedder._table, rows=rows)
        embedder._marks[MARKS] = rows[[embedder._table.vocabulary[chr(code)] for code in MARKS]]
        return embedder

    def compared(self, texts: Texts, tier: Tier) -> Compared:
        asked, stored = texts.groups(tier)
        assert len(asked) == len(self.kinds), "two kinds of agents have a task in common"
        queries, exemplars = _places(asked), _places(stored)
        cosines = numpy.zeros((queries[-1].stop, exemplars[-1].stop), numpy.float32)
        for pair in combinations(range(len(self.kinds)), 2):
            embedder = self.to(*(self.kinds[at] for at in pair))
            for one, other in (pair, pair[::-1]):
                found: NDArray[numpy.float32] = (
                    _embedded(embedder, [asked[one]]) @ _embedded(embedder, [stored[other]]).T
                )
                cosines[numpy.ix_(queries[one], exemplars[other])] = found
        return Compared(cosines=cosines, places=tuple(zip(queries, exemplars, strict=True)))


def told(name: str, tier: Tier, compared: Compared) -> Row:
    curve = _curve(compared.best(SEED), TIER_RULES[tier].steps)
    held: Mapping[float, float] = reached(compared.best(SEED + 1), curve)
    return {
        "embedder": name,
        "tier": tier,
        "points": curve.points,
        "queries": len(compared.cosines),
        "kinds": len(compared.places),
        "reached": {str(at): round(share, 4) for at, share in held.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="place", type=Path, required=True, metavar="PATH", help="as of build_embed.py")
    parser.add_argument("paths", nargs="+", metavar="RUNS", help="files that `reasonblocks replay` reads")
    given = parser.parse_args()
    texts, strange, hashed = Texts(), Strange(given.place, given.paths), HashEmbedder()
    for run in runs(given.paths):
        texts.add(run, kind=kind(run))
    for tier in TIERS_FITTED:
        for row in (
            told(StaticEmbedder.id, tier, strange.compared(texts, tier)),
            told(hashed.id, tier, Compared.of(hashed, texts, tier)),
        ):
            sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
