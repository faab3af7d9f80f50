"""Seeded environments with real tools and an objective end, by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..environment import Environment
from .claim import Claim
from .house import House
from .hunt import Hunt
from .orders import Orders
from .project import Project
from .repair import Repair
from .reword import Reword

FAMILIES: Mapping[str, Callable[[], Environment]] = {
    "house": House,
    "hunt": Hunt,
    "orders": Orders,
    "repair": Repair,
    "claim": Claim,
    "reword": Reword,
    "project": Project,
}
"""A maker of fresh environments of each family."""

PLAIN = tuple(FAMILIES)
"""The families that need nothing installed."""
