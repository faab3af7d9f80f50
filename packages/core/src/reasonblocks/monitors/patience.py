"""Patience: how many of the newest steps have to be dead before an agent is told, learned from the agent's own runs.

A rung is reached by a dead step if enough of the newest steps are dead. An agent's own runs decide which rung is in
use: a rung counts how often it was reached while nothing was told, and how often at most one of the next four steps was
dead, so that a text would have been needless.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..exceptions import ConfigError
from ..types.account import Count, Patience

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
STRETCH = RUNGS[1]
"""The rung at which a dead stretch begins; it ends once at most one of four steps is dead."""
ALONE = 2
"""Dead stretches that ended by themselves, after which a run is told one rung later."""


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


def rung_in_use(patience: Patience) -> Rung | None:
    """Return the rung of a run, moved by its offset; None to be silent."""
    if not patience.rung:
        return None
    at = RUNGS.index(rung_of(patience.rung)) + patience.offset
    return RUNGS[min(len(RUNGS) - 1, max(0, at))]


def after_step(patience: Patience, index: int, told: int | None, *, dead: bool) -> Patience:
    """Return the patience after completed step `index`; `told` is the first step after the newest text.

    Rungs are counted until the first text: what follows one is no longer what the agent does by itself.
    """
    window = (patience.window << 1 | dead) & _WINDOW
    counts = patience.counts or (Count(),) * len(RUNGS)
    if told is None:
        counts = tuple([_counted(count, rung, window) for count, rung in zip(counts, RUNGS, strict=True)])
    return _moved(replace(patience, window=window, counts=counts), index, told)


def _moved(patience: Patience, index: int, told: int | None) -> Patience:
    """Return the patience with its offset moved: up by two dead stretches that ended by themselves, down by a text that
    did not end one.
    """
    dead = (patience.window & (1 << AHEAD) - 1).bit_count()
    if told is not None and index - told + 1 == AHEAD and dead > NEEDLESS:
        return replace(patience, offset=max(-1, patience.offset - 1))
    if patience.since < 0:
        begins = patience.window & 1 and (patience.window & (1 << STRETCH.of) - 1).bit_count() >= STRETCH.dead
        return replace(patience, since=index) if begins else patience
    if dead > NEEDLESS or index - patience.since < AHEAD:
        return patience
    alone = patience.alone + (told is None or told <= patience.since)
    if alone < ALONE:
        return replace(patience, since=-1, alone=alone)
    return replace(patience, since=-1, alone=0, offset=min(1, patience.offset + 1))


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


def learn_rung(counts: Sequence[tuple[int, int]]) -> Rung | None:
    """Return the least patient rung whose share of needless texts is at most the goal; None to be silent.

    `counts` has (reached, needless) of all runs of the agent, one pair for each rung.
    """
    shares = [share_of(reached, needless, rung) for (reached, needless), rung in zip(counts, RUNGS, strict=True)]
    return next((rung for share, rung in zip(shares, RUNGS, strict=True) if share <= GOAL), None)
