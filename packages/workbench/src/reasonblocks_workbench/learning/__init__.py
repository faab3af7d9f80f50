"""Learns lessons from finished runs: where failed runs got stuck, and what successful runs did instead.

A name is loaded when it is first used: what masks secrets in a text is used without all others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._digest import Gathered, RunDigest, digest_of
    from ._distil import Distil, Evidence, distil
    from ._learn import learn, proposals
    from ._proposal import Proposal, read_proposals, together, write_proposals

__all__ = [
    "Distil",
    "Evidence",
    "Gathered",
    "Proposal",
    "RunDigest",
    "digest_of",
    "distil",
    "learn",
    "proposals",
    "read_proposals",
    "together",
    "write_proposals",
]

_HOMES = {
    "Distil": "_distil",
    "Evidence": "_distil",
    "Gathered": "_digest",
    "RunDigest": "_digest",
    "digest_of": "_digest",
    "distil": "_distil",
    "learn": "_learn",
    "proposals": "_learn",
}
"""The module of each name; the others are in `_proposal`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES.get(name, '_proposal')}", __name__), name)


def __dir__() -> list[str]:
    return __all__
