"""An agent's profile: how often each rung was reached in its newest finished runs, and how often for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ..types import JSON, Patience, TraceState
from .patience import DEFAULT, MIN_STRETCHES, RUNGS, learn_rung

MAX_RUNS = 200
"""Newest runs of an agent that are kept."""
MOST = 10_000
"""The highest count of a run that is read."""
EXPLORES = "explores:"
"""The beginning of the name of a patience with which no monitor of ours says anything."""
Summary = Mapping[str, JSON]
"""A finished run: `reached` and `needless` have a count for each rung, and `checks` is True if it checked something."""


def summary_of(state: TraceState) -> Summary:
    """Return the summary of a finished run; empty for a run of which no step was judged."""
    counts = state.patience.counts
    if not counts:
        return {}
    return {
        "reached": [min(MOST, count.reached) for count in counts],
        "needless": [min(MOST, count.needless) for count in counts],
        "checks": state.account.check is not None,
    }


def summary_in(given: object) -> Summary | None:
    """Return a stored summary; None if it is not one, as those of versions before rungs were counted."""
    if not isinstance(given, Mapping):
        return None
    reached, needless, checks = (given.get(name) for name in ("reached", "needless", "checks"))
    if not _are_counts(reached) or not _are_counts(needless) or type(checks) is not bool:
        return None
    return {"reached": reached, "needless": needless, "checks": checks}


def _are_counts(given: object) -> bool:
    return (
        isinstance(given, list)
        and len(given) == len(RUNGS)
        and all(type(count) is int and 0 <= count <= MOST for count in given)
    )


def totals_of(runs: Sequence[Summary]) -> list[tuple[int, int]]:
    """Return how often each rung was reached in all runs, and how often a text would have been needless."""
    given: Sequence[Mapping[str, Any]] = runs
    return [
        (sum([run["reached"][at] for run in given]), sum([run["needless"][at] for run in given]))
        for at in range(len(RUNGS))
    ]


def patience_of(runs: Sequence[Summary], run_id: str = "", explore: float = 0.0) -> Patience:
    """Return the patience of a new run of an agent with these runs.

    The rung is learned from 8 dead stretches on, and the default before. `explore` is the share of runs, by a hash of
    their id, whose monitors are silent, so that the agent can be learned from.
    """
    checks = any(run["checks"] is True for run in runs)
    totals = totals_of(runs)
    if max([reached for reached, _ in totals]) < MIN_STRETCHES:
        return Patience(rung=DEFAULT.name, checks=checks)
    if explore and int.from_bytes(sha256(run_id.encode()).digest()[:8], "big") < explore * 2**64:
        return Patience(rung="", name=f"{EXPLORES} {len(runs)} runs", checks=checks)
    rung = learn_rung(totals)
    name = f"own: {rung.name if rung else 'silent'}, {len(runs)} runs"
    return Patience(rung=rung.name if rung else "", name=name, checks=checks)


def explores(patience: Patience) -> bool:
    """Return True if the monitors are silent in this run to learn from it."""
    return patience.name.startswith(EXPLORES)


def parse_patience(rung: str) -> Patience:
    """Return the patience of the option `patience`."""
    return Patience(rung=rung, name=f"patience: {rung}")
