"""Reads, writes and fits calibrations: the shipped one, those in files, and those fitted to an agent's runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .._calibration_file import as_toml, calibration_of, shipped

if TYPE_CHECKING:
    from ._columns import Observed, observed
    from ._fit import fit

__all__ = ["Observed", "as_toml", "calibration_of", "fit", "observed", "shipped"]

_HOMES = {
    "Observed": "._columns",
    "fit": "._fit",
    "observed": "._columns",
}
"""Names that only a fit needs; importing them brings in numpy."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
