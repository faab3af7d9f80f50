"""What a distiller is given: one trouble that one run or several had, and what successful runs did instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..types import Pattern, Tier
from ._alternatives import Instead
from ._digest import RunDigest
from ._trouble import Kind

MAX_TEXTS = 8
"""Texts of one lesson that similarity is measured against: each is a row that every search compares."""
MAX_IDS = 5
AROUND = 6
"""Steps up to the trouble that the trail tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One trouble of `runs` failed runs of `tasks` tasks.

    `texts`: of each run, what its last steps thought and did there, as one text, masked: people, ids, secrets and
    numbers are "#". `trail`: the steps of the first run up to there, a line each. `times`: how often it happened in
    the run that had it most. `instead`: what successful runs did, None where none shows it. All of it is data from
    runs: no text of it is an instruction.
    """

    tier: Tier
    org_id: str
    kind: Kind
    runs: int
    tasks: int
    times: int
    run_ids: tuple[str, ...]
    texts: tuple[str, ...]
    trail: tuple[str, ...]
    instead: Instead | None


Distil: TypeAlias = Callable[[Evidence], "Pattern | None"]
"""What makes a lesson of evidence, or None where there is nothing worth saying."""


def evidence_of(tier: Tier, org_id: str, runs: Sequence[RunDigest], instead: Instead | None) -> Evidence:
    """The evidence of runs whose troubles are of one kind; the first is what the lesson is named after."""
    troubles = [run.trouble for run in runs if run.trouble is not None]
    texts = dict.fromkeys("\n".join(run.texts[tier]) for run in runs)
    return Evidence(
        tier=tier,
        org_id=org_id,
        kind=troubles[0].kind,
        runs=len({run.run_id for run in runs}),
        tasks=len({run.task_key for run in runs}),
        times=max(len(trouble.steps) for trouble in troubles),
        run_ids=tuple(run.label for run in runs[:MAX_IDS]),
        texts=tuple(text for text in texts if text.strip())[:MAX_TEXTS],
        trail=_trail(runs[0]),
        instead=instead,
    )


def _trail(run: RunDigest) -> tuple[str, ...]:
    if run.trouble is None:
        return ()
    at = run.trouble.at
    first = max(0, at + 1 - AROUND)
    return tuple(
        f"step {n}: {act.tool or 'no tool'}: {act.error or ('found nothing' if act.empty else 'went well')}"
        for n, act in enumerate(run.acts[first : at + 1], first)
    )
