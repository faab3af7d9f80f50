"""How alike texts are, as a live search would say it; each text is embedded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ports import Embedder
from ..types import Tier

__all__ = ["Similar"]

Rows = npt.NDArray[np.float32]


class Similar:
    """Calibrated similarity by one embedder. Holds a vector a text: as bounded as the texts are."""

    __slots__ = ("_embedder", "_vectors")

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def highest(self, tier: Tier, ones: Sequence[str], others: Sequence[str]) -> float:
        """The similarity of the two that are nearest to each other; 0 without any."""
        if not ones or not others:
            return 0.0
        return self._embedder.curves.of(tier)(float((self._rows(ones) @ self._rows(others).T).max()))

    def _rows(self, texts: Sequence[str]) -> Rows:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            given: Any = self._embedder.embed_many(new)  # sequences of numbers, arrays where it has them
            rows = np.asarray(given, np.float32).reshape(len(new), -1)
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            self._vectors.update(zip(new, rows / np.where(norms > 0, norms, 1), strict=True))
        return np.stack([self._vectors[text] for text in texts])
