"""Shortens old, long tool outputs in requests, so that this never costs more than sending them whole.

docs/token-saving.md has the rules of the providers' caches that this stands on.
"""

from __future__ import annotations

from ._ledger import SavingPlan
from ._parts import RequestPart
from ._token_saving import TokenSaving

__all__ = ["RequestPart", "SavingPlan", "TokenSaving"]
