"""Implements the command line: replay of recorded runs, calibration, patterns, learning, and diagnosis."""

from __future__ import annotations

from ._main import main

__all__ = ["main"]
