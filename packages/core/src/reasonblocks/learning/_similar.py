"""How alike texts are, as a live search would say it; each text is embedded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..backends._stores.table import Rows
from ..backends._stores.vectors import Vectors
from ..ports import Embedder
from ..types import Tier

__all__ = ["Similar"]


class Similar:
    """Calibrated similarity by one embedder. Holds a vector a text: as bounded as the texts are.

    Raises `BadAnswer` for what an embedder must not give; what an embedder raises is passed on.
    """

    __slots__ = ("_kept", "_vectors")

    def __init__(self, embedder: Embedder) -> None:
        self._vectors = Vectors(embedder)
        self._kept: dict[str, Rows] = {}

    def highest(self, tier: Tier, ones: Sequence[str], others: Sequence[str]) -> float:
        """The similarity of the two that are nearest to each other; 0 without any."""
        if not ones or not others:
            return 0.0
        return self._vectors.embedder.curves.of(tier)(float((self._rows(ones) @ self._rows(others).T).max()))

    def _rows(self, texts: Sequence[str]) -> Rows:
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            self._kept.update(zip(new, self._vectors.of(new), strict=True))
        return np.stack([self._kept[text] for text in texts])
