"""Separates the run options from the keywords that an adapter passes on to its framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from ..exceptions import ConfigError
from ..types import RunOptions


def split_keywords(
    function: str, given: Mapping[str, Any], others: Iterable[str] = ()
) -> tuple[RunOptions, dict[str, Any]]:
    """Return the run options in `given`, and the framework's own keywords, whose names are `others`.

    Raises `ConfigError` with the nearest valid name for a name that is neither.
    """
    ours = {field.name for field in fields(RunOptions)}
    known = {*ours, *others}
    for name in given:
        if name not in known:
            raise ConfigError.unknown(f"a keyword of {function}", name, sorted(known))
    mine = {name: value for name, value in given.items() if name in ours}
    return RunOptions(**mine), {name: value for name, value in given.items() if name not in ours}
