"""A transformer model on ONNX, by the library `fastembed`."""

from __future__ import annotations

from ._answer import library
from ._callable import CallableEmbedder
from ._curves import Given

__all__ = ["FastEmbedEmbedder"]


class FastEmbedEmbedder(CallableEmbedder):
    """The model of a name, which the library downloads once. A step waits tens of milliseconds for it on a CPU.

    `id` is "fastembed:" with the name unless given. Raises `ExtraMissing` without the library.
    """

    def __init__(self, name: str, *, id: str | None = None, curves: Given = None) -> None:
        model = library("fastembed", type(self).__name__, "fastembed").TextEmbedding(model_name=name)
        dim = len(next(iter(model.embed(["dimension"]))))
        super().__init__(
            lambda text: next(iter(model.embed([text]))),
            id=id or f"fastembed:{name}",
            dim=dim,
            many=lambda texts: list(model.embed(texts)),
            curves=curves,
        )
