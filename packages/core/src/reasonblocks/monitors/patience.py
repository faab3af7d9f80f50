"""Patience: how many of the newest steps have to be dead before an agent is told, learned from the agent's own runs.

A rung is reached by a dead step if enough of the newest steps are dead. An agent's own runs decide which rung is in
use: a rung counts how often it was reached while nothing was told, and how often at most one of the next four steps was
dead, so that a text would have been needless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..exceptions import ConfigError

AHEAD, NEEDLESS = 4, 1
"""A text is needless if at most one of the next four steps is dead: the agent got out by itself."""
SPACED = 3
"""Steps from one count of a rung to the next, at least: the usual cooldown of texts."""
GOAL = 0.3
"""Share of needless texts up to which a rung may be used."""
MIN_STRETCHES = 8
"""Counts of all runs from which on an agent's own patience is used."""
PRIOR_WEIGHT = 5
"""Weight of a rung's prior share, in counts."""
_WINDOW = (1 << 9) - 1
_WRITTEN = re.compile(r"\s*(\d)\s+of\s+(\d)\s*")


class Rung(NamedTuple):
    """So many `dead` steps `of` so many; `prior` is the share of needless texts before anything is known."""

    dead: int
    of: int
    prior: float

    @property
    def name(self) -> str:
        return f"{self.dead} of {self.of}"


RUNGS = (
    Rung(2, 3, 0.5),
    Rung(3, 5, 0.4),
    Rung(3, 3, 0.4),
    Rung(4, 5, 0.3),
    Rung(5, 6, 0.25),
    Rung(6, 7, 0.2),
    Rung(8, 9, 0.15),
)
"""The rungs, from the least patient one on. The priors are starting values: an agent's own counts outweigh them."""
DEFAULT = RUNGS[3]


class Count(NamedTuple):
    """The times that a rung was `reached`, those at which a text would have been `needless`, and the `open` ones.

    Bit n of `open` is set if the rung was reached n steps ago, and what followed is not known yet.
    """

    reached: int = 0
    needless: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretches:
    """The counts of a run, one for each rung, and its newest nine steps as bits: 1 for dead, the newest the lowest."""

    window: int = 0
    counts: tuple[Count, ...] = (Count(),) * len(RUNGS)


def rung_of(patience: object) -> Rung:
    """Return the rung that "3 of 5" names. Raises `ConfigError` for any other text."""
    found = _WRITTEN.fullmatch(patience) if isinstance(patience, str) else None
    rung = next((rung for rung in RUNGS if found and (rung.dead, rung.of) == (int(found[1]), int(found[2]))), None)
    if rung is None:
        raise ConfigError("patience", patience, f"must be one of {', '.join(repr(rung.name) for rung in RUNGS)}")
    return rung


def is_reached(letters: str, rung: Rung) -> bool:
    """Return True if the newest step is dead, and enough of the newest steps are; `letters` has "." for the others."""
    newest = letters[-rung.of :]
    return newest[-1:] not in ("", ".") and len(newest) - newest.count(".") >= rung.dead


def counted(stretches: Stretches, *, dead: bool) -> Stretches:
    """Return the counts after one more step."""
    window = (stretches.window << 1 | dead) & _WINDOW
    return Stretches(
        window=window,
        counts=tuple([_counted(count, rung, window) for count, rung in zip(stretches.counts, RUNGS, strict=True)]),
    )


def _counted(count: Count, rung: Rung, window: int) -> Count:
    reached, needless, waiting = count.reached, count.needless, count.open << 1
    if waiting >> AHEAD & 1:
        reached += 1
        needless += (window & (1 << AHEAD) - 1).bit_count() <= NEEDLESS
    waiting &= (1 << AHEAD) - 1
    due = window & 1 and (window & (1 << rung.of) - 1).bit_count() >= rung.dead
    return Count(reached, needless, waiting | (1 if due and not waiting & (1 << SPACED) - 1 else 0))


def share_of(reached: int, needless: int, rung: Rung) -> float:
    """Return the share of needless texts of a rung, with its prior."""
    return (needless + PRIOR_WEIGHT * rung.prior) / (reached + PRIOR_WEIGHT)


def learned(counts: Sequence[tuple[int, int]]) -> Rung | None:
    """Return the least patient rung whose share of needless texts is at most the goal; None to be silent.

    `counts` has (reached, needless) of all runs of the agent, one pair for each rung. With too few counts the rung is
    the default.
    """
    if max((reached for reached, _ in counts), default=0) < MIN_STRETCHES:
        return DEFAULT
    shares = [share_of(reached, needless, rung) for (reached, needless), rung in zip(counts, RUNGS, strict=True)]
    return next((rung for share, rung in zip(shares, RUNGS, strict=True) if share <= GOAL), None)
