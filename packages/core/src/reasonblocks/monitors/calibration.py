"""Reads and writes calibrations, the fitted numbers of the monitors, as TOML."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from ..exceptions import ConfigError
from ..types import Level
from ..util.files import NotToml, loads, read_toml
from ..util.json import is_number
from .builtin import BY_NAME, Calibration, IndicatorWeight
from .indicators import INDICATORS
from .persistence import Weights

SHIPPED_LEVEL = Level(mean=0.19, spread=0.034)
"""The level of a step's weighted parts, without errors, in the first steps of recorded runs of coding, SQL, web and
service agents."""
SHIPPED = Path(__file__).with_name("_calibration_shipped.toml")
"""Written by `./dev shipped_calibration RUNS...`."""
KEYS = ("difficulty_mean", "difficulty_spread", "composite_fires", "fires", "evidence", "persistence", "own_level")
PERSISTENCE = tuple(field.name for field in fields(Weights))
MAX_WEIGHT = 10.0


@cache
def shipped() -> Calibration:
    """Return the default calibration: the fitted file, with the level that belongs to the scorer."""
    values = loads(SHIPPED.read_text(encoding="utf-8"))
    return Calibration(
        level=SHIPPED_LEVEL,
        fires=values["fires"],
        composite=values["composite_fires"],
        persistence=Weights(**values["persistence"]),
        evidence={name: IndicatorWeight(**weighed) for name, weighed in values["evidence"].items()},
        own_level=True,
    )


def calibration_of(given: Mapping[str, Any] | str | os.PathLike[str] | None) -> Calibration:
    """Return the calibration of a mapping or a TOML file; missing values are as shipped. Raises `ConfigError`.

    A given calibration takes precedence over the agent's own level, unless it sets `own_level`.
    """
    base = shipped()
    if given is None:
        return base
    if not isinstance(given, (Mapping, str, os.PathLike)):
        raise ConfigError("calibration", given, "must be a mapping or the path of a TOML file")
    values = given if isinstance(given, Mapping) else _read(given)
    for key in values:
        if key not in KEYS:
            raise ConfigError.unknown("calibration", key, KEYS)
    fires = _table(values, "fires", BY_NAME)
    evidence = values.get("evidence")
    return Calibration(
        level=Level(
            mean=_number(values, "difficulty_mean", base.level.mean),
            spread=_number(values, "difficulty_spread", base.level.spread, above=True),
        ),
        fires={name: _number(fires, name, base.fires[name], "fires", above=True) for name in BY_NAME},
        composite=_number(values, "composite_fires", base.composite, above=True),
        persistence=_persistence(_table(values, "persistence", PERSISTENCE), base.persistence),
        evidence=base.evidence if evidence is None else _evidence(_table(values, "evidence", INDICATORS)),
        own_level=_flag(values, "own_level"),
    )


def as_toml(calibration: Calibration, heading: str = "") -> str:
    """Return the file's text, with `heading` before it as comments."""
    level = calibration.level
    lines = ["# The raw difficulty that is normal, and how far it spreads."]
    lines += [f"difficulty_mean = {level.mean!r}", f"difficulty_spread = {level.spread!r}", ""]
    if calibration.own_level:
        lines += ["# The agent's own level replaces the thresholds.", "own_level = true", ""]
    return comments(heading) + "\n".join(lines) + "\n" + monitors_toml(calibration)


def comments(text: str) -> str:
    """Return the text as comments and an empty line; nothing for no text."""
    return "".join([f"# {line}".rstrip() + "\n" for line in text.splitlines()]) + ("\n" if text else "")


def monitors_toml(calibration: Calibration) -> str:
    """Return all but the level, which for the shipped numbers belongs to the scorer."""
    lines = ["# The composite, twice in a row, at which the second path opens."]
    lines += [f"composite_fires = {calibration.composite!r}", "", "# The score at which each monitor fires.", "[fires]"]
    lines += [f"{name} = {value!r}" for name, value in calibration.fires.items()]
    lines += [
        "",
        "# The weights of the chance that the trouble lasts, and the chance from which on a text is injected.",
        "[persistence]",
        *[f"{name} = {getattr(calibration.persistence, name)!r}" for name in PERSISTENCE],
        "",
        "# What each evidence adds to the composite for each unit that it lies above its centre.",
        "[evidence]",
    ]
    lines += [
        f"{name} = {{ weight = {item.weight!r}, centre = {item.centre!r} }}"
        for name, item in calibration.evidence.items()
    ]
    return "\n".join(lines) + "\n"


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        return read_toml(path)
    except (OSError, NotToml) as exc:
        raise ConfigError("calibration", os.fspath(path), f"cannot be read as TOML: {exc}") from exc


def _table(values: Mapping[str, Any], name: str, known: Collection[str]) -> Mapping[str, Any]:
    given = values.get(name, {})
    if not isinstance(given, Mapping):
        raise ConfigError(f"calibration[{name!r}]", given, "must be a table")
    for key in given:
        if key not in known:
            raise ConfigError.unknown(f"calibration[{name!r}]", key, known)
    return given


def _number(
    values: Mapping[str, Any], name: str, default: float, table: str | None = None, *, above: bool = False
) -> float:
    """Return a number in [0, 1], above 0 if `above` is set."""
    value = values.get(name, default)
    if not is_number(value) or not 0 <= value <= 1 or (above and value == 0):
        where = f"calibration[{table!r}][{name!r}]" if table else f"calibration[{name!r}]"
        raise ConfigError(where, value, "must be a number in (0, 1]" if above else "must be a number in [0, 1]")
    return float(value)


def _flag(values: Mapping[str, Any], name: str) -> bool:
    value: object = values.get(name, False)
    if not isinstance(value, bool):
        raise ConfigError(f"calibration[{name!r}]", value, "must be true or false")
    return value


def _persistence(given: Mapping[str, Any], base: Weights) -> Weights:
    weights = {name: _weight(given, name, getattr(base, name)) for name in PERSISTENCE if name != "threshold"}
    return Weights(threshold=_number(given, "threshold", base.threshold, "persistence", above=True), **weights)


def _weight(values: Mapping[str, Any], name: str, default: float) -> float:
    value = values.get(name, default)
    if not is_number(value) or abs(value) > MAX_WEIGHT:
        where = f"calibration['persistence'][{name!r}]"
        raise ConfigError(where, value, f"must be a number from -{MAX_WEIGHT:g} to {MAX_WEIGHT:g}")
    return float(value)


def _evidence(given: Mapping[str, Any]) -> dict[str, IndicatorWeight]:
    return {name: _weighed(name, value) for name, value in given.items()}


def _weighed(name: str, given: object) -> IndicatorWeight:
    rule = f"must be {{weight = -{MAX_WEIGHT:g} to {MAX_WEIGHT:g}, centre = 0 to 1}}"
    if not isinstance(given, Mapping) or set(given) != {"weight", "centre"}:
        raise ConfigError(f"calibration['evidence'][{name!r}]", given, rule)
    weight, centre = given["weight"], given["centre"]
    if not (is_number(weight) and abs(weight) <= MAX_WEIGHT and is_number(centre) and 0 <= centre <= 1):
        raise ConfigError(f"calibration['evidence'][{name!r}]", dict(given), rule)
    return IndicatorWeight(weight=float(weight), centre=float(centre))
