"""Loads the default embedder of the stores, and determines which embedders may be called inline."""

from __future__ import annotations

from ...ports import Embedder
from ..embed import default_embedder


def default() -> Embedder:
    return default_embedder()


def is_quick(embedder: Embedder) -> bool:
    """Return True for an embedder that takes microseconds, as our in-process ones declare."""
    return getattr(embedder, "inline", False) is True
