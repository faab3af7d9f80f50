"""Implements the command `reasonblocks-threads`: list, show and answer what waits for a person."""

from __future__ import annotations

from ._main import main as main
