"""The command line: replay of recorded runs, calibration, patterns, and what is installed here."""

from __future__ import annotations

from ._main import main

__all__ = ["main"]
