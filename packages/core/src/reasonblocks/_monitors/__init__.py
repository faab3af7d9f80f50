"""The monitors: what each sees of a completed step, and what all together say of it."""

from __future__ import annotations

from .builtin import MONITORS, WEIGHTS, resolve_weights
from .suite import evaluate

__all__ = ["MONITORS", "WEIGHTS", "evaluate", "resolve_weights"]
