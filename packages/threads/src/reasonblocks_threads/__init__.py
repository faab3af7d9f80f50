"""Threads: matters that a person decides, from an agent's proposal or a stuck run to the action."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._async import AsyncThreads as AsyncThreads
    from ._builtin import BUILT_IN as BUILT_IN
