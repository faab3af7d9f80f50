"""The command line as a user meets it: arguments in, exit code and texts out."""

from __future__ import annotations

from tests.workbench.cli.conftest import command

__all__ = ["command"]
