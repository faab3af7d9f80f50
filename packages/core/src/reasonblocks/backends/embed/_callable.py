"""The embedder around a caller's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from ...exceptions import BadAnswer, ConfigError
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
