"""Implements the command line: replay of recorded runs, calibration, patterns, learning, and diagnosis."""

from __future__ import annotations

from reasonblocks.foreign import refuse_foreign

refuse_foreign()  # first, because the imports below fail if the other product has replaced `reasonblocks/__init__.py`
from ._main import main  # noqa: E402

__all__ = ["main"]
