"""Calibrations: the level of an agent's difficulty, and the curves of an embedder, fitted to recorded runs."""

from __future__ import annotations

from .level import fit_level

__all__ = ["fit_level"]
