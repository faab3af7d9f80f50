"""Tells listeners of new events, and agents of the notes that wait for them, from the memory of one worker."""

from __future__ import annotations

from ._live import Live
from ._subscription import Message, Subscription

__all__ = ["Live", "Message", "Subscription"]
