"""Implements the commands that the server adds to `reasonblocks`: `serve` and `keys`."""

from __future__ import annotations

from ._keys import add_to as add_keys
from ._serve import add_to as add_serve

__all__ = ["add_keys", "add_serve"]
