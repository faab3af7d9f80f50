"""Which store the commands of `reasonblocks patterns` work on, and what an author sees of it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..exceptions import ReasonBlocksError
from ._home import STORE, in_home, placed

if TYPE_CHECKING:
    from ..backends.local_store import LocalStore
    from ..types import Pattern, Tier

__all__ = ["ORG", "TIERS", "Origin", "add_org", "add_store", "named", "opened", "origin"]

ORG = "default"
"""The org of a client that names none."""
TIERS: tuple[Tier, ...] = ("e1", "e2", "e3")
Origin: TypeAlias = Literal["starter", "yours", "yours, over the starter's", "starter, off"]


def add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="PATH", help=f"the file ({in_home(STORE)})")


def add_org(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--org", metavar="ORG", help=what)


def opened(arguments: argparse.Namespace) -> LocalStore:
    """The store, the starter library under it. Its file is made when something is added."""
    from ..backends.local_store import LocalStore
    from ..starter import starter_patterns

    return LocalStore(placed(arguments.store, STORE, "--store PATH"), layer=starter_patterns())


def origin(pattern: Pattern) -> Origin:
    from ..starter import starter_patterns

    shipped = {one.id: one for one in starter_patterns()}
    if pattern.id not in shipped:
        return "yours"
    if pattern.off:
        return "starter, off"
    return "starter" if shipped[pattern.id] == pattern else "yours, over the starter's"


def named(store: LocalStore, pattern_id: str) -> Pattern:
    """The pattern of that id. Raises `ReasonBlocksError` with the nearest one."""
    from ..text import nearest

    found = store.get(pattern_id)
    if found is None:
        near = nearest(pattern_id, [one.id for one in store.list(ORG, layer=True)])
        hint = f"; did you mean {near!r}?" if near else "; `reasonblocks patterns list` names them"
        raise ReasonBlocksError(f"no pattern is called {pattern_id!r}{hint}")
    return found
