"""What adapters stand on: how they are found, and what more than one of them needs. Loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._find import ADAPTERS, find_adapter, refuse_foreign

if TYPE_CHECKING:
    from .._session import ms_since
    from ._calls import call_key, failure_of, same_model
    from ._keywords import RunKeywords, split_keywords
    from ._options import RunOptions
    from ._runs import CLOSE_SECONDS, Held, HeldRun, Newest, Runs, SteeringFace, view_of

__all__ = [
    "ADAPTERS",
    "CLOSE_SECONDS",
    "Held",
    "HeldRun",
    "Newest",
    "RunKeywords",
    "RunOptions",
    "Runs",
    "SteeringFace",
    "call_key",
    "failure_of",
    "find_adapter",
    "ms_since",
    "refuse_foreign",
    "same_model",
    "split_keywords",
    "view_of",
]

_HOMES = {
    "CLOSE_SECONDS": "._runs",
    "Held": "._runs",
    "HeldRun": "._runs",
    "Newest": "._runs",
    "RunKeywords": "._keywords",
    "RunOptions": "._options",
    "Runs": "._runs",
    "SteeringFace": "._runs",
    "call_key": "._calls",
    "failure_of": "._calls",
    "ms_since": ".._session",
    "same_model": "._calls",
    "split_keywords": "._keywords",
    "view_of": "._runs",
}
"""Where a name lives that the client, which imports this package to find adapters, does not need."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
