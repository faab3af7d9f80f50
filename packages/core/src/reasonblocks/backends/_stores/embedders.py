"""Which embedder a store has that was given none, and which ones are quick enough to be called inline."""

from __future__ import annotations

from ...ports import Embedder
from ..embed import HashEmbedder

__all__ = ["default", "is_quick"]


def default() -> Embedder:
    return HashEmbedder()


def is_quick(embedder: Embedder) -> bool:
    """Is it ours, and does it take microseconds?"""
    return isinstance(embedder, HashEmbedder)
