"""The kit for adapters: shared options, runs, calls, models and flows."""

from __future__ import annotations

from .._discovery import ADAPTERS, find_adapter
from .._foreign import refuse_foreign
from .._formats.content import output_of
from .._keywords import split_keywords
from .._outcomes import ABANDONED
from .._routing import attribute, is_identifier, model_name
from .._session import InThread, RunView, SteeringFlow, Wait, adrive, drive, ms_since
from .._snapshot import decode
from .._text import bounded, clip, digest
from ..types import RunFields, RunKeywords, RunOptions
from ._calls import REFUSALS, OpenCall, RoutedModels, call_key, failure_of, same_model, status_of
from ._runs import (
    CLOSE_SECONDS,
    AdapterRun,
    Held,
    HeldRun,
    Newest,
    Runs,
    SteeringFace,
    SteeringHandle,
    view_of,
)

__all__ = [
    "ABANDONED",
    "ADAPTERS",
    "CLOSE_SECONDS",
    "REFUSALS",
    "AdapterRun",
    "Held",
    "HeldRun",
    "InThread",
    "Newest",
    "OpenCall",
    "RoutedModels",
    "RunFields",
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
    "decode",
    "digest",
    "drive",
    "failure_of",
    "find_adapter",
    "is_identifier",
    "model_name",
    "ms_since",
    "output_of",
    "same_model",
    "split_keywords",
    "status_of",
    "view_of",
]

refuse_foreign()  # for adapters where the other product has replaced `reasonblocks/__init__.py`
