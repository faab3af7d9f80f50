"""Implements `reasonblocks calibrate` and `patterns calibrate`: fit the level of difficulty, and similarity curves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from typer import Argument, BadParameter, Option

from reasonblocks.exceptions import ConfigError
from reasonblocks.util.text import count_noun

from .files import STDOUT, runs_of, write
from .options import Format, reference
from .output import OK, PROBLEM, Table, say, show, warn

if TYPE_CHECKING:
    from reasonblocks.ports import Embedder

    from ..calibration.similarity import Fit, Texts
    from ..traces import RecordedRun

KINDS = "static, hash, openai:MODEL@URL or MODULE:NAME"
KEY = "OPENAI_API_KEY"


def calibrate(
    files: Annotated[list[str], Argument(metavar="FILE")],
    out: Annotated[str, Option(metavar="FILE.toml", help="the file to write, for calibration=; - prints it")],
    format: Format = None,
    as_json: Annotated[bool, Option("--json", help="print the level as one JSON object")] = False,
) -> int:
    """Fit the difficulty that is normal to runs of one agent, whatever their outcome.

    How patient the monitors are is learned by profiles instead. FILE is any file that `replay` reads.
    """
    from reasonblocks.monitors.calibration import SHIPPED_LEVEL, as_toml

    from ..calibration.level import fit_level

    if as_json and out == STDOUT:
        raise ConfigError("--out", STDOUT, "with --json name a file: both would go to stdout")
    found = [run for run in runs_of(files, format) if run.steps]
    if not found:
        warn("reasonblocks calibrate: no run with a step could be read")
        return PROBLEM
    level = fit_level(found)
    sources = sorted({run.source for run in found if run.source})
    counted = count_noun(len(found), "run") + (f" of {', '.join(sources)}" if sources else "")
    write(out, as_toml(level, f"Made by `reasonblocks calibrate`: {counted}."))
    if as_json:
        pair = {"calibrated": level.mean, "shipped": SHIPPED_LEVEL.mean}
        say(json.dumps({"out": out, "runs": len(found), "sources": sources, "difficulty_mean": pair}))
    elif out != STDOUT:
        row = ("difficulty_mean", f"{level.mean:.3f}", f"{SHIPPED_LEVEL.mean:.3f}")
        show(Table(title=f"{out}: {counted}", head=("", "calibrated", "shipped"), rows=[row]))
    return OK


def calibrate_curves(
    files: Annotated[list[str], Argument(metavar="RUNS")],
    out: Annotated[str, Option(metavar="FILE.toml", help="the file to write, for an embedder's curves=; - prints it")],
    embedder: Annotated[
        str, Option(metavar="WHICH", help=f"{KINDS}; ${KEY} is the key, if the server needs one")
    ] = "static",
    format: Format = None,
    as_json: Annotated[bool, Option("--json", help="print the figures as one JSON object")] = False,
) -> int:
    """Fit an embedder's similarity curves to recorded runs.

    Measures the cosines that unrelated texts of the runs reach in a bank of 400 patterns, and fits curves to them: at
    most 5 % of the texts reach a similarity of 0.7, at most 1 % reach 0.8. Texts of one source are compared with
    those of other sources; if there is only one source, texts of one task with those of other tasks. RUNS are files
    that `replay` reads.
    """
    if as_json and out == STDOUT:
        raise ConfigError("--out", STDOUT, "with --json name a file: both would go to stdout")
    measured = embedder_of(embedder, os.environ)
    from ..calibration.similarity import fit_curves

    texts = _read(runs_of(files, format))
    if not texts.runs:
        warn("reasonblocks patterns calibrate: no run could be read")
        return PROBLEM
    fit = fit_curves(measured, texts)
    write(out, _file(measured, texts, fit))
    if as_json:
        say(json.dumps(_figures(measured, texts, fit, out)))
    elif out != STDOUT:
        show(_table(fit, f"{out}: {measured.id}, {count_noun(texts.runs, 'run')}"))
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
    except BadParameter as error:
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

    lines = [f"Made by `reasonblocks patterns calibrate`: {count_noun(texts.runs, 'run')}.", *_summary(fit)]
    return comments("\n".join(lines)) + curves_file(embedder.id, fit.curves)


def _summary(fit: Fit) -> list[str]:
    return [
        f"{tier}: {count_noun(fit.queries[tier], 'text')} of {fit.groups[tier]} kinds or tasks; in draws of their own "
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
