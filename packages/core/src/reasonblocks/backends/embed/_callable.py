"""An embedder out of a function of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...exceptions import ConfigError
from ...patterns import SimilarityCurves
from ._answer import Rows, rows
from ._curves import Given, curves_for

__all__ = ["CallableEmbedder"]


class CallableEmbedder:
    """`function` turns a text into `dim` finite numbers, `many`, if there is one, a list of texts into as many rows.

    `id` names the embedding space: give another when the model changes, for vectors of two ids are never compared.
    `curves` say what a cosine is worth: a `SimilarityCurves`, or the path of a file that `reasonblocks patterns
    calibrate` wrote; without them the cosine itself is taken, with a warning. Raises `ConfigError` for a bad `id`,
    `dim` or file, and `BadAnswer` for what is not so many finite numbers.
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
        """float32 [dim]."""
        vector: Rows = rows(self.id, [self._function(text)], 1, self.dim)[0]
        return vector

    def embed_many(self, texts: Sequence[str]) -> Rows:
        """float32 [texts, dim]."""
        given = list(texts)
        made = map(self._function, given) if self._many is None or not given else self._many(given)
        return rows(self.id, made if hasattr(made, "shape") else list(made), len(given), self.dim)


def _check(name: object, dim: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ConfigError("id", name, "must name the embedding space")
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:
        raise ConfigError("dim", dim, "must be the count of a vector's numbers")
