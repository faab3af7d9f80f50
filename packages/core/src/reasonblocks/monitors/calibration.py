"""Reads and writes calibrations, the level of an agent's difficulty, as TOML."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import ConfigError
from ..types import Level
from ..util.files import NotToml, read_toml
from ..util.json import is_number

SHIPPED_LEVEL = Level(mean=0.19, spread=0.034)
"""The level of a step's weighted parts, without errors, in the first steps of recorded runs of coding, SQL, web and
service agents."""
KEYS = ("difficulty_mean", "difficulty_spread")
GONE = ("composite_fires", "fires", "evidence", "persistence", "own_level")
"""Keys of older files, which have no effect."""


def level_of(
    given: Mapping[str, Any] | str | os.PathLike[str] | None, warn: Callable[[str], object] = lambda text: None
) -> Level:
    """Return the level of a mapping or a TOML file; missing values are as shipped. Raises `ConfigError`.

    Keys of older versions are read over; `warn` is given one text that names them.
    """
    if given is None:
        return SHIPPED_LEVEL
    if not isinstance(given, (Mapping, str, os.PathLike)):
        raise ConfigError("calibration", given, "must be a mapping or the path of a TOML file")
    values = given if isinstance(given, Mapping) else _read(given)
    for key in values:
        if key not in (*KEYS, *GONE):
            raise ConfigError.unknown("calibration", key, KEYS)
    if gone := [key for key in GONE if key in values]:
        warn(f"calibration: {', '.join(gone)} have no effect any more (the patience option replaces them)")
    return Level(
        mean=_number(values, "difficulty_mean", SHIPPED_LEVEL.mean),
        spread=_number(values, "difficulty_spread", SHIPPED_LEVEL.spread, above=True),
    )


def as_toml(level: Level, heading: str = "") -> str:
    """Return the file's text, with `heading` before it as comments."""
    lines = ["# The raw difficulty that is normal, and how far it spreads."]
    lines += [f"difficulty_mean = {level.mean!r}", f"difficulty_spread = {level.spread!r}"]
    return comments(heading) + "\n".join(lines) + "\n"


def comments(text: str) -> str:
    """Return the text as comments and an empty line; nothing for no text."""
    return "".join([f"# {line}".rstrip() + "\n" for line in text.splitlines()]) + ("\n" if text else "")


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        return read_toml(path)
    except (OSError, NotToml) as exc:
        raise ConfigError("calibration", os.fspath(path), f"cannot be read as TOML: {exc}") from exc


def _number(values: Mapping[str, Any], name: str, default: float, *, above: bool = False) -> float:
    """Return a number in [0, 1], above 0 if `above` is set."""
    value = values.get(name, default)
    if not is_number(value) or not 0 <= value <= 1 or (above and value == 0):
        rule = "must be a number in (0, 1]" if above else "must be a number in [0, 1]"
        raise ConfigError(f"calibration[{name!r}]", value, rule)
    return float(value)
