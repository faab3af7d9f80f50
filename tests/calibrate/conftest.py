"""The command line, as the core's tests have it."""

from __future__ import annotations

from tests.workbench.cli.conftest import command, write

__all__ = ["command", "write"]
