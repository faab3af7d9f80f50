"""Shortens conversations that exceed a model's context."""

from __future__ import annotations

from collections.abc import Sequence

from ..backend import Message


def without_oldest_call(messages: Sequence[Message]) -> list[Message] | None:
    """Return the messages without the first turn of the assistant that is not the last, and its results, or None."""
    turns = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    return [*messages[: turns[0]], *messages[turns[1] :]] if len(turns) > 1 else None
