"""Calibrations: the numbers of the monitors, as shipped, from a file, or fitted to the recorded runs of one agent."""

from __future__ import annotations

from .._calibration_file import as_toml, calibration_of, shipped
from ._columns import Observed, observed
from ._fit import fit

__all__ = ["Observed", "as_toml", "calibration_of", "fit", "observed", "shipped"]
