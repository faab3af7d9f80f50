"""Embedders: the shipped model, a lexical one, a server, and a function. Each is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._callable import CallableEmbedder
    from ._hash import HashEmbedder
    from ._openai import OpenAIEmbedder
    from ._static import StaticEmbedder
    from .default import default_embedder

__all__ = [
    "CallableEmbedder",
    "HashEmbedder",
    "OpenAIEmbedder",
    "StaticEmbedder",
    "default_embedder",
]

_HOMES = {
    "CallableEmbedder": "_callable",
    "HashEmbedder": "_hash",
    "OpenAIEmbedder": "_openai",
    "StaticEmbedder": "_static",
    "default_embedder": "default",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
