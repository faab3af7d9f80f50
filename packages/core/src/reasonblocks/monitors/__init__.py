"""The built-in monitors, and the evaluation of a completed step by all of them."""

from __future__ import annotations

from .builtin import MONITORS, WEIGHTS, resolve_weights
from .suite import evaluate

__all__ = ["MONITORS", "WEIGHTS", "evaluate", "resolve_weights"]
