"""The monitors: what each sees of a completed step, and what all together say of it."""

from __future__ import annotations

from .builtin import MONITORS
from .suite import evaluate
from .weights import WEIGHTS, resolve_weights

__all__ = ["MONITORS", "WEIGHTS", "evaluate", "resolve_weights"]
