"""A transformer model, by the library `sentence-transformers`."""

from __future__ import annotations

from typing import Any

from ...exceptions import ConfigError
from ._answer import library
from ._callable import CallableEmbedder
from ._curves import Given

__all__ = ["SentenceTransformerEmbedder"]


class SentenceTransformerEmbedder(CallableEmbedder):
    """The model of a name or a folder, which the library loads, or a `SentenceTransformer` that is loaded already.

    A step waits some 100 ms for it on a CPU. `id` is "sentence-transformers:" with the name unless given; a loaded
    model needs one. Raises `ExtraMissing` without the library.
    """

    def __init__(self, model: Any, *, id: str | None = None, curves: Given = None) -> None:  # a name, or its own class
        if isinstance(model, str):
            id = id or f"sentence-transformers:{model}"
            made = library("sentence_transformers", type(self).__name__, "sentence-transformers")
            model = made.SentenceTransformer(model)
        elif id is None:
            raise ConfigError("id", id, "must name the embedding space of a model that is loaded already")
        dim = len(model.encode(["dimension"])[0])
        super().__init__(
            lambda text: model.encode([text])[0], id=id, dim=dim, many=lambda texts: model.encode(texts), curves=curves
        )
