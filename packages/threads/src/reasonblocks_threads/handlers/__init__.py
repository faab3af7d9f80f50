"""Handlers: what is done for each kind of work, and the settling of letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ._cascades import cascade_down, cascade_up
from ._execute import execute
from ._infer import infer
from ._plain import begin, clean_up, notify, time_out
from .letters import settle_letter as settle_letter
from .letters import withdraw_letter as withdraw_letter

if TYPE_CHECKING:
    from ..engine import Engine
    from ..phases import WorkKind
    from ..values import Work

HANDLERS: Mapping[WorkKind, Callable[[Engine, Work], None]] = MappingProxyType(
    {
        "begin": begin,
        "infer": infer,
        "execute": execute,
        "clean_up": clean_up,
        "timeout": time_out,
        "cascade_up": cascade_up,
        "cascade_down": cascade_down,
        "notify": notify,
    }
)
"""By the kind of work. Each submits what came of it; one that raises is tried again."""
