"""Reads and writes the similarity curves of an embedder that is not shipped."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from ...exceptions import ConfigError
from ...patterns import Curve, SimilarityCurves
from ...util.files import NotToml, read_toml
from ...util.json import is_number

Given: TypeAlias = "SimilarityCurves | str | os.PathLike[str] | None"

COMMAND = "reasonblocks patterns calibrate"
UNFITTED = SimilarityCurves(e1=Curve(((0.0, 0.0), (1.0, 1.0))), e2=Curve(((0.0, 0.0), (1.0, 1.0))))
"""Returns the cosine itself, because nothing was fitted."""
_log = logging.getLogger("reasonblocks")
_said: set[str] = set()


def curves_for(embedder_id: str, given: Given) -> SimilarityCurves:
    """Return the given curves, those of a file, or, with a warning, unfitted ones. Raises `ConfigError`."""
    if isinstance(given, SimilarityCurves):
        return given
    if given is not None:
        return _read(Path(given), embedder_id)
    if embedder_id not in _said:
        _said.add(embedder_id)
        _log.warning("nobody has fitted what cosines of %s are worth; do so with: %s", embedder_id, COMMAND)
    return UNFITTED


def curves_file(embedder_id: str, curves: SimilarityCurves) -> str:
    """Return the TOML that `curves=` reads, without a header."""
    lines = [f"embedder = {_quoted(embedder_id)}", ""]
    for name, curve in (("e1", curves.e1), ("e2", curves.e2)):
        points = ", ".join(f"[{cosine!r}, {similarity!r}]" for cosine, similarity in curve.points)
        lines += [f"[{name}]", f"points = [{points}]", ""]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        raise ConfigError("embedder id", text, "must be printable")
    return f'"{escaped}"'


def _read(path: Path, embedder_id: str) -> SimilarityCurves:
    try:
        values = read_toml(path)
    except OSError as error:
        raise ConfigError("curves", str(path), f"cannot be read: {error.strerror}") from error
    except NotToml as error:
        raise ConfigError("curves", str(path), f"is not TOML: {error}") from error
    if values.get("embedder") != embedder_id:
        rule = f"is of embedder {values.get('embedder')!r}, not of {embedder_id!r}: fit it with {COMMAND}"
        raise ConfigError("curves", str(path), rule)
    return SimilarityCurves(e1=_curve(values, "e1", path), e2=_curve(values, "e2", path))


def _curve(values: Mapping[str, object], name: str, path: Path) -> Curve:
    table = values.get(name)
    points = table.get("points") if isinstance(table, Mapping) else None
    if not isinstance(points, list) or not all(map(_is_point, points)):
        rule = f"[{name}] needs points = [[cosine, similarity], ...], from -1 to 1"
        raise ConfigError("curves", str(path), rule)
    return Curve(tuple((float(cosine), float(similarity)) for cosine, similarity in points))


def _is_point(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(is_number(part) and -1 <= part <= 1 for part in value)
