"""Chooses the default embedder, and logs when it is not the shipped model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...exceptions import Unavailable

if TYPE_CHECKING:
    from ._hash import HashEmbedder
    from ._static import StaticEmbedder

COST = "patterns are found by shared wording only, with the HashEmbedder"
_log = logging.getLogger("reasonblocks")
_said: set[str] = set()


def default_embedder() -> StaticEmbedder | HashEmbedder:
    """Return the shipped model. Without numpy or the model's data, return `HashEmbedder` and log it once."""
    found, missing = _found()
    if missing and missing not in _said:
        _said.add(missing)
        _log.warning("%s: %s", missing, COST)
    return found


def embedder_line() -> str:
    """Return a line for people: the default embedder's id, and what is missing if it is not the shipped model."""
    found, missing = _found()
    return f"{found.id} ({missing}: {COST})" if missing else found.id


def _found() -> tuple[StaticEmbedder | HashEmbedder, str]:
    try:
        from ._static import StaticEmbedder

        return StaticEmbedder(), ""
    except ImportError:
        missing = "numpy is missing (pip install numpy)"
    except Unavailable as error:
        missing = str(error)
    from ._hash import HashEmbedder

    return HashEmbedder(), missing
