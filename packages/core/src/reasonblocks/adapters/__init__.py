"""What adapters stand on: how they are found, and what more than one of them needs. Loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._find import ADAPTERS, find_adapter, refuse_foreign

if TYPE_CHECKING:
    from .._routing import attribute, is_identifier, model_name
    from .._session import ABANDONED, InThread, RunView, SteeringFlow, Wait, adrive, drive, ms_since
    from .._text import bounded, clip, digest
    from ._calls import OpenCall, call_key, failure_of, same_model
    from ._keywords import RunKeywords, split_keywords
    from ._models import RoutedModels
    from ._options import RunOptions
    from ._runs import CLOSE_SECONDS, AdapterRun, Held, HeldRun, Newest, Runs, SteeringFace, SteeringHandle, view_of

__all__ = [
    "ABANDONED",
    "ADAPTERS",
    "CLOSE_SECONDS",
    "AdapterRun",
    "Held",
    "HeldRun",
    "InThread",
    "Newest",
    "OpenCall",
    "RoutedModels",
    "RunKeywords",
    "RunOptions",
    "RunView",
    "Runs",
    "SteeringFace",
    "SteeringFlow",
    "SteeringHandle",
    "Wait",
    "adrive",
    "attribute",
    "bounded",
    "call_key",
    "clip",
    "digest",
    "drive",
    "failure_of",
    "find_adapter",
    "is_identifier",
    "model_name",
    "ms_since",
    "refuse_foreign",
    "same_model",
    "split_keywords",
    "view_of",
]

_HOMES = {
    "ABANDONED": ".._session",
    "CLOSE_SECONDS": "._runs",
    "AdapterRun": "._runs",
    "Held": "._runs",
    "HeldRun": "._runs",
    "InThread": ".._session",
    "Newest": "._runs",
    "OpenCall": "._calls",
    "RoutedModels": "._models",
    "RunKeywords": "._keywords",
    "RunOptions": "._options",
    "RunView": ".._session",
    "Runs": "._runs",
    "SteeringFace": "._runs",
    "SteeringHandle": "._runs",
    "SteeringFlow": ".._session",
    "Wait": ".._session",
    "adrive": ".._session",
    "attribute": ".._routing",
    "bounded": ".._text",
    "call_key": "._calls",
    "clip": ".._text",
    "digest": ".._text",
    "drive": ".._session",
    "failure_of": "._calls",
    "is_identifier": ".._routing",
    "model_name": ".._routing",
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
