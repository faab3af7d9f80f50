"""What turns texts into vectors: the shipped model, what needs nothing, and doors to others. Loaded by name only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._default import default_embedder
    from ._hash import HashEmbedder
    from ._static import StaticEmbedder

__all__ = ["HashEmbedder", "StaticEmbedder", "default_embedder"]

_HOMES = {
    "HashEmbedder": "_hash",
    "StaticEmbedder": "_static",
    "default_embedder": "_default",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
