"""What becomes of a pattern that a store has already: the same one stays, a different one is its next revision."""

from __future__ import annotations

from ..types import Pattern, evolve
from ._json import pattern_json

COUNTED = ("retrieved", "injected", "recovered", "not_recovered")
"""What `stats` count, in the order of a run."""


def revised(given: Pattern, stored: Pattern | None, now: str) -> Pattern:
    """What is to be stored when `given` is added over `stored` at `now`, an ISO time.

    What differs in more than revision, time and counts takes the next revision and keeps only the counts that it
    brings: those of other words say nothing of these. What does not is `stored`, with the counts that `given` brings.
    """
    if stored is None:
        return evolve(given, created_at=given.created_at or now)
    created_at = given.created_at or stored.created_at
    if _content(given) == _content(stored):
        return evolve(stored, created_at=created_at, stats=given.stats or stored.stats)
    return evolve(given, created_at=created_at, revision=max(given.revision, stored.revision + 1))


def _content(pattern: Pattern) -> dict[str, object]:
    plain: dict[str, object] = dict(pattern_json(pattern))
    return {name: value for name, value in plain.items() if name not in ("revision", "created_at", "stats")}
