"""Implements the command `reasonblocks-threads`, which lists, shows and answers cards."""

from __future__ import annotations

from ._main import main as main
