"""The numbers that recorded runs have fitted: shipped, from a file, or fitted to the runs of one agent."""

from __future__ import annotations

from ._file import as_toml, calibration_of, shipped

__all__ = ["as_toml", "calibration_of", "shipped"]
