"""Calibrations: the numbers of the monitors, as shipped, from a file, or fitted to the recorded runs of one agent."""

from __future__ import annotations

from reasonblocks.monitors.calibration import as_toml, calibration_of, shipped

from ._columns import Observed, observed
from .fitting import fit

__all__ = ["Observed", "as_toml", "calibration_of", "fit", "observed", "shipped"]
