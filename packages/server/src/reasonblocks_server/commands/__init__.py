"""Implements the commands that the server adds to `reasonblocks`: `serve` and `keys`."""

from __future__ import annotations

from ._keys import keys
from ._serve import serve

__all__ = ["keys", "serve"]
