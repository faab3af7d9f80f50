"""Answers the requests of the HTTP API without I/O of its own, for any server of the API."""

from __future__ import annotations

from ._evaluations import DEFAULT_PROFILE, Evaluations, retrieved, scored
from ._findings import cleared, invalidated, listed, recalled, stored, summarised

__all__ = [
    "DEFAULT_PROFILE", "Evaluations", "cleared", "invalidated", "listed", "recalled", "retrieved", "scored", "stored",
    "summarised",
]  # fmt: skip
