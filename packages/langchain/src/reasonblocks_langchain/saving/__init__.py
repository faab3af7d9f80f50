"""Shortens old, long tool outputs in requests, if that costs no more than sending them whole.

docs/token-saving.md describes the assumptions about the providers' caches.
"""

from __future__ import annotations

from ._ledger import LOST, Book, SavingPlan
from ._parts import RequestPart
from ._sizes import is_longer, json_bytes
from ._token_saving import TokenSaving

__all__ = ["LOST", "Book", "RequestPart", "SavingPlan", "TokenSaving", "is_longer", "json_bytes"]
