"""The kit for adapters: run options, the runs of a steering object, and what reads foreign models and errors."""

from __future__ import annotations

from .._discovery import ADAPTERS, find_adapter, refuse_foreign
from .._routing import attribute, is_identifier, model_name
from .._session import ABANDONED, RunView, ms_since
from .._snapshot import decode
from .._text import bounded, clip, digest
from ..types import RunKeywords, RunOptions
from ._calls import call_key, failure_of, same_model
from ._options import split_keywords
from ._runs import CLOSE_SECONDS, Held, HeldRun, Newest, Runs, SteeringFace, view_of

__all__ = [
    "ABANDONED",
    "ADAPTERS",
    "CLOSE_SECONDS",
    "Held",
    "HeldRun",
    "Newest",
    "RunKeywords",
    "RunOptions",
    "RunView",
    "Runs",
    "SteeringFace",
    "attribute",
    "bounded",
    "call_key",
    "clip",
    "decode",
    "digest",
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
