"""Finds the adapters that are installed, and refuses what would break them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..exceptions import AdapterMissing, ForeignDistribution

ADAPTER_GROUP = "reasonblocks.adapters"
ADAPTERS = {
    "middleware": "reasonblocks-langchain",
    "openai_hooks": "reasonblocks-openai-agents",
    "openai_model": "reasonblocks-openai-agents",
    "openai_run": "reasonblocks-openai-agents",
    "openai_run_streamed": "reasonblocks-openai-agents",
    "openai_run_sync": "reasonblocks-openai-agents",
}
"""Which distribution brings which method of `rb`."""
FOREIGN = "reasonblocks"


def find_adapter(method: str) -> Callable[..., Any] | None:
    """What an installed adapter offers under this name; None for a name that no adapter has.

    Raises `AdapterMissing` with the `pip install` line for an adapter that is not installed.
    """
    if method.startswith("_"):
        return None
    from importlib.metadata import entry_points  # slow to import, and needed by adapters only

    for point in entry_points(group=ADAPTER_GROUP, name=method):
        target: Callable[..., Any] = point.load()
        return target
    if method in ADAPTERS:
        raise AdapterMissing(method, ADAPTERS[method])
    return None


def refuse_foreign() -> None:
    """For adapters: raise `ForeignDistribution` where another product has overwritten our import package."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(FOREIGN)
    except PackageNotFoundError:
        return
    raise ForeignDistribution(FOREIGN)
