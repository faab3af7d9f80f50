"""Seeded environments with real tools and an objective end, by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..environment import Environment
from .claim import Claim
from .house import House
from .hunt import Hunt
from .orders import Orders
from .pages import Pages
from .pasted import Pasted
from .project import Project
from .repair import Repair
from .reword import Reword
from .roots import Roots
from .scienceworld_lab import science
from .textworld_games import coins, cooking

PLAIN: Mapping[str, Callable[[], Environment]] = {
    "house": House,
    "hunt": Hunt,
    "orders": Orders,
    "repair": Repair,
    "claim": Claim,
    "reword": Reword,
    "project": Project,
    "pasted": Pasted,
    "pages": Pages,
    "roots": Roots,
}
"""The families that need nothing installed: makers of fresh environments."""
WORLDS: Mapping[str, Callable[[], Environment]] = {"coins": coins, "cooking": cooking, "science": science}
"""The families that somebody else wrote: they need the packages `textworld` and `scienceworld`, and Java."""
FAMILIES: Mapping[str, Callable[[], Environment]] = {**PLAIN, **WORLDS}
"""All families."""
