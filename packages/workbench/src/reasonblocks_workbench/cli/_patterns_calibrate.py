"""Implements `reasonblocks patterns calibrate`: fits an embedder's similarity curves to recorded runs."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reasonblocks.exceptions import ConfigError

from .files import STDOUT, add_format, runs_of, write
from .options import reference
from .output import OK, PROBLEM, Parsers, Table, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.ports import Embedder

    from ..calibration.similarity import Fit, Texts
    from ..traces import RecordedRun

KINDS = "static, hash, openai:MODEL@URL or MODULE:NAME"
KEY = "OPENAI_API_KEY"


def add_to(commands: Parsers) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="fit an embedder's similarity curves to recorded runs",
        description="Measures the cosines that unrelated texts of recorded runs reach in a bank of 400 patterns, and "
        "fits curves to them: at most 5 % of the texts reach a similarity of 0.7, at most 1 % reach 0.8. Texts of one "
        "source are compared with those of other sources; if there is only one source, texts of one task with those of "
        "other tasks. RUNS are files that `replay` reads.",
        allow_abbrev=False,
    )
    parser.usage = "reasonblocks patterns calibrate [OPTIONS] RUNS... --out FILE.toml"
    parser.add_argument("files", nargs="+", metavar="RUNS")
    parser.add_argument(
        "--out", required=True, metavar="FILE.toml", help="the file to write, for an embedder's curves=; - prints it"
    )
    parser.add_argument(
        "--embedder",
        default="static",
        metavar="WHICH",
        help=f"{KINDS} (static); ${KEY} is the key, if the server needs one",
    )
    add_format(parser)
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    parser.set_defaults(command=calibrate)


def calibrate(arguments: argparse.Namespace) -> int:
    """Fit and write; return 1 if no run could be read. Raises `ConfigError` if nothing can be fitted."""
    if arguments.json and arguments.out == STDOUT:
        raise ConfigError("--out", STDOUT, "with --json name a file: both would go to stdout")
    embedder = embedder_of(arguments.embedder, os.environ)
    from ..calibration.similarity import fit_curves

    texts = _read(runs_of(arguments.files, arguments.format))
    if not texts.runs:
        warn("reasonblocks patterns calibrate: no run could be read")
        return PROBLEM
    fit = fit_curves(embedder, texts)
    write(arguments.out, _file(embedder, texts, fit))
    if arguments.json:
        say(json.dumps(_figures(embedder, texts, fit, arguments.out)))
    elif arguments.out != STDOUT:
        show(_table(fit, f"{arguments.out}: {embedder.id}, {texts.runs} runs"))
    return OK


def embedder_of(text: str, environment: Mapping[str, str]) -> Embedder:
    """Return the embedder that the option names. Raises `ConfigError` for an unknown one."""
    from reasonblocks.backends import embed
    from reasonblocks.backends.embed.curves import UNFITTED

    kind, _, rest = text.partition(":")
    if text in ("static", "hash"):
        return embed.StaticEmbedder() if text == "static" else embed.HashEmbedder()
    if kind == "openai" and rest:
        model, at, url = rest.partition("@")
        if not at:
            raise ConfigError("--embedder", text, "must name the server as well: openai:MODEL@URL")
        return embed.OpenAIEmbedder(model, url, environment.get(KEY), curves=UNFITTED)
    return _own(text)


def _own(text: str) -> Embedder:
    from reasonblocks.ports import Embedder

    if ":" not in text:
        raise ConfigError("--embedder", text, f"must be {KINDS}")
    try:
        found = reference(text)
    except argparse.ArgumentTypeError as error:
        raise ConfigError("--embedder", text, str(error)) from error
    if not isinstance(found, Embedder):
        raise ConfigError("--embedder", text, "is not an embedder: it needs id, dim, curves, embed and embed_many")
    return found


def _read(runs: Iterable[RecordedRun]) -> Texts:
    """Read the texts of all runs."""
    from ..calibration.similarity import Texts

    texts = Texts()
    for run in runs:
        texts.add(run)
    return texts


def _file(embedder: Embedder, texts: Texts, fit: Fit) -> str:
    from reasonblocks.backends.embed.curves import curves_file
    from reasonblocks.monitors.calibration import comments

    lines = [f"Made by `reasonblocks patterns calibrate`: {texts.runs} runs.", *_summary(fit)]
    return comments("\n".join(lines)) + curves_file(embedder.id, fit.curves)


def _summary(fit: Fit) -> list[str]:
    return [
        f"{tier}: {fit.queries[tier]} texts of {fit.groups[tier]} kinds or tasks; in draws of their own "
        + ", ".join(f"{share:.1%} reached {at:g}" for at, share in fit.reached[tier].items())
        for tier in fit.queries
    ]


def _table(fit: Fit, title: str) -> Table:
    rows = [
        (tier, f"{cosine:.4f}", f"{similarity:g}", f"{fit.reached[tier][similarity]:.1%}")
        for tier in fit.queries
        for cosine, similarity in fit.curves.of(tier).points
        if similarity in fit.reached[tier]
    ]
    return Table(title=title, head=("tier", "cosine", "similarity", "unrelated texts that reach it"), rows=rows)


def _figures(embedder: Embedder, texts: Texts, fit: Fit, out: str) -> dict[str, object]:
    tiers: dict[str, object] = {
        tier: {
            "points": fit.curves.of(tier).points,
            "texts": fit.queries[tier],
            "groups": fit.groups[tier],
            "reached": {f"{at:g}": share for at, share in fit.reached[tier].items()},
        }
        for tier in fit.queries
    }
    return {"out": out, "embedder": embedder.id, "runs": texts.runs, **tiers}
