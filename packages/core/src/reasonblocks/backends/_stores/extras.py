"""Is the library there that a store cannot do without? Asked without importing it, which may take a second."""

from __future__ import annotations

from importlib.util import find_spec

from ...exceptions import ExtraMissing

__all__ = ["require"]


def require(what: str, module: str, distribution: str, extra: str) -> None:
    """Raises `ExtraMissing`, with the line that installs it."""
    try:
        found = find_spec(module) is not None
    except ValueError:  # what stands in `sys.modules` is no module
        found = False
    if not found:
        raise ExtraMissing(what, distribution, extra)
