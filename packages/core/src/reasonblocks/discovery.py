"""Finds installed adapters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .exceptions import AdapterMissing

ADAPTER_GROUP = "reasonblocks.adapters"
ADAPTERS = {
    "claude_hooks": "reasonblocks-claude-agent",
    "middleware": "reasonblocks-langchain",
    "openai_hooks": "reasonblocks-openai-agents",
    "openai_model": "reasonblocks-openai-agents",
    "openai_run": "reasonblocks-openai-agents",
    "openai_run_streamed": "reasonblocks-openai-agents",
    "openai_run_sync": "reasonblocks-openai-agents",
}
"""The distribution that provides each method of `rb`."""
FIRST_CALLED_IN_A_STEP = {"agents": "openai_run", "claude_agent_sdk": "claude_hooks"}
"""Frameworks, by their module, whose adapter may first be called in an event loop; each with one of its methods."""

_FOUND: dict[str, Callable[..., Any]] = {}


def find_adapter(method: str) -> Callable[..., Any] | None:
    """Return the function of an installed adapter; None for a name that no adapter has.

    Raises `AdapterMissing` with the `pip install` line for an adapter that is not installed.
    """
    if method.startswith("_"):
        return None
    if (found := _FOUND.get(method) or _loaded(method)) is not None:
        return found
    if method in ADAPTERS:
        raise AdapterMissing(method, ADAPTERS[method])
    return None


def _loaded(method: str) -> Callable[..., Any] | None:
    """Load the entry point once, because a lookup reads the metadata of every distribution."""
    from importlib.metadata import entry_points  # slow to import, and needed by adapters only

    for point in entry_points(group=ADAPTER_GROUP, name=method):
        _FOUND[method] = point.load()
    return _FOUND.get(method)


def adapter_methods() -> list[str]:
    """Return the methods of our adapters and of the installed ones of others, without loading any."""
    from importlib.metadata import entry_points

    return sorted({*ADAPTERS, *(point.name for point in entry_points(group=ADAPTER_GROUP))})


def installed_methods() -> list[str]:
    """Return the methods whose distribution is installed, for editors, without loading any."""
    from importlib.metadata import PackageNotFoundError, distribution

    here = set()
    for name in set(ADAPTERS.values()):
        with suppress(PackageNotFoundError):
            distribution(name)
            here.add(name)
    return [method for method, name in ADAPTERS.items() if name in here]


def load_adapters() -> None:
    """Load the adapters of frameworks that are loaded already, so that no step has to."""
    for framework, method in FIRST_CALLED_IN_A_STEP.items():
        if framework in sys.modules and method not in _FOUND:
            _loaded(method)
