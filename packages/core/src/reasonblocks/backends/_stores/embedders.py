"""Which embedder a store has that was given none, and which ones are quick enough to be called inline."""

from __future__ import annotations

from ...ports import Embedder
from ..embed import default_embedder


def default() -> Embedder:
    return default_embedder()


def is_quick(embedder: Embedder) -> bool:
    """Does it take microseconds, as those of ours that work in the process say they do?"""
    return getattr(embedder, "inline", False) is True
