"""Notifies a worker's listeners of new events, and passes waiting notes to its agents."""

from __future__ import annotations

from ._live import Live
from ._subscription import Message, Subscription

__all__ = ["Live", "Message", "Subscription"]
