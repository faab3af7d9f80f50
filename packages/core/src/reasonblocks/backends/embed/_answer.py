"""Is what an embedder of others gave usable: as many vectors as texts, of one dimension, of finite numbers?"""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from ...exceptions import BadAnswer, ExtraMissing

__all__ = ["Rows", "library", "rows"]

Rows: TypeAlias = NDArray[numpy.float32]


def rows(source: str, given: object, count: int, dim: int | None) -> Rows:
    """float32 [count, dim], of any dimension where none is given. Raises `BadAnswer` for anything else."""
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
