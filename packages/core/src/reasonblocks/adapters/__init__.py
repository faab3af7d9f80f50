"""The kit for adapters: shared options, runs, calls, models and flows."""

from __future__ import annotations

from ..discovery import ADAPTERS, find_adapter
from ..engine.routing import attribute, is_identifier, model_name
from ..foreign import refuse_foreign
from ..keywords import split_keywords
from ..messages.content import output_of
from ..session import InThread, RunView, SteeringFlow, Wait, adrive, drive, ms_since
from ..session.snapshot import decode
from ..session.snapshot import prepare as prepare_snapshots
from ..types import RunFields, RunKeywords, RunOptions
from ..types.outcomes import ABANDONED
from ..util.text import clip, cut_with_hash, digest
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
from ._user import new_user_text, user_text

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
    "call_key",
    "clip",
    "cut_with_hash",
    "decode",
    "digest",
    "drive",
    "failure_of",
    "find_adapter",
    "is_identifier",
    "model_name",
    "ms_since",
    "new_user_text",
    "output_of",
    "prepare_snapshots",
    "same_model",
    "split_keywords",
    "status_of",
    "user_text",
    "view_of",
]

refuse_foreign()  # for adapters where the other product has replaced `reasonblocks/__init__.py`
