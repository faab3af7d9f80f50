"""Shortens old, long tool outputs in requests, if that costs no more than sending them whole.

docs/token-saving.md describes the assumptions about the providers' caches.
"""

from __future__ import annotations

from ._ledger import SavingPlan
from ._parts import RequestPart
from ._token_saving import TokenSaving

__all__ = ["RequestPart", "SavingPlan", "TokenSaving"]
