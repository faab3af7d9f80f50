"""Embedders around a caller's function and around models of other libraries."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from ...exceptions import BadAnswer, ConfigError, ExtraMissing
from ...patterns import SimilarityCurves
from .curves import Given, curves_for

Rows: TypeAlias = NDArray[numpy.float32]


def rows(source: str, given: object, count: int, dim: int | None) -> Rows:
    """Return an embedder's output as float32 [count, dim]; any dimension passes if `dim` is None.

    Raises `BadAnswer` for other shapes and for values that are not finite."""
    try:
        found = numpy.asarray(given, dtype=numpy.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadAnswer(source, type(given).__name__, f"must be rows of numbers: {error}") from error
    if not count:
        return numpy.zeros((0, dim or 0), numpy.float32)
    if found.ndim != 2 or len(found) != count or not found.shape[1] or (dim is not None and found.shape[1] != dim):
        wanted = "any dimension" if dim is None else f"dimension {dim}"
        raise BadAnswer(source, found.shape, f"must be {count} vectors of {wanted}")
    if not numpy.isfinite(found).all():
        raise BadAnswer(source, "not finite", "must be finite numbers")
    return found


def library(
    name: str, what: str, distribution: str, extra: str | None = None
) -> Any:  # untyped, because it may not be installed
    """Import a module of an extra, by default the extra with the distribution's name.

    Raises `ExtraMissing` with the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ExtraMissing(what, distribution, extra or distribution) from error


class CallableEmbedder:
    """Wraps a function that turns a text into `dim` finite numbers, and optionally `many`, for a list of texts.

    `id` names the embedding space; vectors of different ids are never compared, so change it with the model.
    `curves` turn a cosine into a similarity: a `SimilarityCurves`, or the path of a file that `reasonblocks patterns
    calibrate` wrote. Without them the cosine itself is used, with a warning. Raises `ConfigError` for a bad `id`,
    `dim` or file, and `BadAnswer` for output of another shape or with values that are not finite.
    """

    def __init__(
        self,
        function: Callable[[str], object],
        *,
        id: str,
        dim: int,
        many: Callable[[list[str]], Iterable[object]] | None = None,
        curves: Given = None,
    ) -> None:
        _check(id, dim)
        self.id, self.dim = id, dim
        self.curves: SimilarityCurves = curves_for(id, curves)
        self._function, self._many = function, many

    def embed(self, text: str) -> Rows:
        """Return float32 [dim]."""
        vector: Rows = rows(self.id, [self._function(text)], 1, self.dim)[0]
        return vector

    def embed_many(self, texts: Sequence[str]) -> Rows:
        """Return float32 [texts, dim]."""
        given = list(texts)
        made = map(self._function, given) if self._many is None or not given else self._many(given)
        return rows(self.id, made if hasattr(made, "shape") else list(made), len(given), self.dim)


def _check(name: object, dim: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ConfigError("id", name, "must name the embedding space")
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:
        raise ConfigError("dim", dim, "must be the count of a vector's numbers")


class Model2VecEmbedder(CallableEmbedder):
    """Wraps a model2vec model, by name (the library may download it) or folder.

    `id` defaults to "model2vec:" with the name or the folder's name. Raises `ExtraMissing` without the library.
    """

    def __init__(self, name: str | os.PathLike[str], *, id: str | None = None, curves: Given = None) -> None:
        name = os.fspath(name)
        model = library("model2vec", type(self).__name__, "model2vec").StaticModel.from_pretrained(name)
        named = id or f"model2vec:{os.path.basename(name) if os.path.isdir(name) else name}"
        super().__init__(
            lambda text: model.encode([text])[0], id=named, dim=int(model.dim), many=model.encode, curves=curves
        )


class FastEmbedEmbedder(CallableEmbedder):
    """Wraps a fastembed model, which the library downloads once. Takes tens of milliseconds per text on a CPU.

    `id` defaults to "fastembed:" with the name. Raises `ExtraMissing` without the library.
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


class SentenceTransformerEmbedder(CallableEmbedder):
    """Wraps a model by name or folder, or a loaded `SentenceTransformer`.

    Takes some 100 ms per text on a CPU. `id` defaults to "sentence-transformers:" with the name; a loaded model
    needs one. Raises `ExtraMissing` without the library.
    """

    def __init__(self, model: Any, *, id: str | None = None, curves: Given = None) -> None:  # a name, or its own class
        if isinstance(model, (str, os.PathLike)):
            model = os.fspath(model)
            id = id or f"sentence-transformers:{model}"
            made = library("sentence_transformers", type(self).__name__, "sentence-transformers")
            model = made.SentenceTransformer(model)
        elif id is None:
            raise ConfigError("id", id, "must name the embedding space of a model that is loaded already")
        dim = len(model.encode(["dimension"])[0])
        super().__init__(
            lambda text: model.encode([text])[0], id=id, dim=dim, many=lambda texts: model.encode(texts), curves=curves
        )
