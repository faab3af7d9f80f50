"""Any other static model, by the library `model2vec`."""

from __future__ import annotations

import os

from ._answer import library
from ._callable import CallableEmbedder
from ._curves import Given

__all__ = ["Model2VecEmbedder"]


class Model2VecEmbedder(CallableEmbedder):
    """The model of a name, which the library may download, or of a folder.

    `id` is "model2vec:" with the name or the folder's name unless given. Raises `ExtraMissing` without the library.
    """

    def __init__(self, name: str | os.PathLike[str], *, id: str | None = None, curves: Given = None) -> None:
        model = library("model2vec", type(self).__name__, "model2vec").StaticModel.from_pretrained(os.fspath(name))
        named = id or f"model2vec:{os.path.basename(name) if os.path.isdir(name) else name}"
        super().__init__(
            lambda text: model.encode([text])[0], id=named, dim=int(model.dim), many=model.encode, curves=curves
        )
