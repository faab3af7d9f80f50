"""Estimates the chance that trouble lasts: that at least two of the next four steps bring nothing new either.

A logistic model of four numbers, which know nothing of the agent, its tools or its task:
- how much of the run's results so far was known already;
- if this step brought nothing, how often such a step was followed by another one in this run;
- whether the result is an error, or reports a failed test;
- how many of the last eight steps brought nothing, times how many of them repeated a call.
The second one makes the estimate patient with a run that has recovered by itself before. `Calibration` has the weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..types import JSON
from .arguments import is_reworded
from .features import Features
from .memory import count, fraction, numbers, table
from .novelty import ERRORS_KEPT, STALE, STALE_ERROR

OWN_MEMORY = "_persistence"
"""The key of this memory among those of the monitors; snapshots have it."""
RETRIES = 2
"""Errors in a row that may pass, such as timeouts, after which another one is trouble like any other."""
WINDOW = 8
"""Newest steps whose results and calls are counted."""
AHEAD, LASTING = 4, 2
"""Trouble lasts if so many (2) of so many steps ahead (4) bring nothing new; the weights are fitted to that."""
_NEWEST = (1 << WINDOW) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of the model; `threshold` is the chance from which on a text is injected."""

    threshold: float
    base: float
    known: float
    lasted: float
    failed: float
    repeated: float


def measure(features: Features, memory: JSON) -> tuple[tuple[float, float, float, float], JSON]:
    """Return the four numbers after this step, and the memory; an error of a known kind, or a search that
    was only reworded, makes the step stale.

    `stale`, `called` and `old` of the memory are the newest eight steps as bits, the last step the lowest: those that
    brought nothing, that repeated a call, and whose results earlier ones had. `followed` of `counted` steps that
    brought nothing were followed by another one.
    """
    kept = table(memory)
    errors, asked = numbers(kept, "errors"), numbers(kept, "asked")
    passed = count(kept, "passed") + 1 if features.passing else 0
    if _fails_again(features, errors) or _asks_again(features, asked) or (passed > RETRIES and features.brought.stale):
        features.stale = True
    steps, stale, called = count(kept, "steps") + 1, count(kept, "stale"), count(kept, "called")
    counted, followed = count(kept, "counted"), count(kept, "followed")
    if stale & 1:
        counted, followed = counted + 1, followed + features.stale
    known = fraction(kept, "known") + 1.0 - features.brought.fresh
    stale, called = (stale << 1 | features.stale) & _NEWEST, (called << 1 | features.brought.same_call) & _NEWEST
    old = 0 if features.changed else count(kept, "old")
    newest = min(WINDOW, steps)
    return (
        known / steps,
        (1 + followed) / (2 + counted) if features.stale else 0.0,
        float(features.failing),
        stale.bit_count() * called.bit_count() / newest**2,
    ), {
        "steps": steps,
        "known": round(known, 3),
        "stale": stale,
        "called": called,
        "old": (old << 1 | (features.stale and features.brought.fresh < STALE)) & _NEWEST,
        "counted": counted,
        "followed": followed,
        "passed": min(passed, RETRIES + 1),
        "errors": [*errors, features.error_kind or 0][-ERRORS_KEPT:],
        "asked": list(features.gist) or asked,
    }


def _fails_again(features: Features, errors: list[int]) -> bool:
    return features.error_kind in errors and not features.passing and features.brought.fresh < STALE_ERROR


def _asks_again(features: Features, asked: list[int]) -> bool:
    """Return True for a search that found nothing, as did the last one, which asked for the same in other words."""
    return (
        features.empty and not features.waiting and features.brought.same_result and is_reworded(features.gist, asked)
    )


def chance(numbers: tuple[float, float, float, float], weights: Weights) -> float:
    """Return the chance that the trouble lasts; 0 to 1."""
    known, lasted, failed, repeated = numbers
    z = weights.base + weights.known * known + weights.lasted * lasted
    z += weights.failed * failed + weights.repeated * repeated
    return round(1 / (1 + math.exp(-max(-30.0, min(30.0, z)))), 4)


def complete(features: Features, numbers: tuple[float, float, float, float], memory: JSON, weights: Weights) -> None:
    """Complete the features by the chance that the trouble lasts, and by the steps in a row that brought nothing."""
    features.lasting = chance(numbers, weights)
    features.known_row = row(table(memory), "old")


def row(memory: Mapping[str, JSON], name: str) -> int:
    """Return how many of the newest steps in a row, at most eight, have their bit set."""
    bits, steps = count(memory, name), 0
    while bits >> steps & 1:
        steps += 1
    return steps
