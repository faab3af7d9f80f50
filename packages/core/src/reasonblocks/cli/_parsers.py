"""Where a command adds itself."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Protocol

__all__ = ["Parsers"]


class Parsers(Protocol):
    """What `add_subparsers` gives."""

    def add_parser(self, name: str, *, help: str, description: str, allow_abbrev: bool) -> ArgumentParser: ...
