"""Decides which steps of a run were stale (nothing new came of them), and where a run was in lasting trouble.

The definition looks at what came back, word by word, and shares no code with the monitors that it judges. A step is
stale if one of these holds:

- its call was made before, and the result is the one that the call had the last time, or under 20 % new;
- its result has at least 8 word 4-grams, and under 10 % of them are new;
- its result has the error line of one of the last 6 steps, digits aside, and is under 50 % new.

A result's novelty is the share of its word 4-grams that no earlier result of the run had. Staleness is not the truth: a
training log repeats itself for good reasons.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from reasonblocks_workbench.traces import RecordedRun

from .flat import FlatStep, flat_runs

__all__ = ["TROUBLE_STEPS", "stale_runs", "stale_steps", "troubles"]

Grams: TypeAlias = "set[tuple[str, ...]]"
RESULT_CHARACTERS = 3_000
GRAM = 4
ENOUGH_GRAMS = 8
"""Shorter results have too few 4-grams to be judged by them alone."""
NEW_TO_A_RESULT = 0.1
NEW_TO_A_REPEATED_CALL = 0.2
NEW_TO_A_REPEATED_ERROR = 0.5
ERRORS_REMEMBERED = 6
ERROR_LINE_CHARACTERS = 160
TROUBLE_STEPS, TROUBLE_STALE = 6, 4
"""A trouble begins at a stale step if so many of the steps from it on, itself included, are stale."""

_word = re.compile(r"\w+|[^\w\s]")
_digits = re.compile(r"\d+")
_error = re.compile(r"\b(?:error|exception|failed|failure|traceback|not found|no such|denied|invalid)\b", re.IGNORECASE)


def stale_runs(runs: Sequence[RecordedRun]) -> list[tuple[bool, ...]]:
    """Return the stale steps of each run."""
    return [tuple(stale_steps(steps)) for steps in flat_runs(runs)]


def stale_steps(steps: Sequence[FlatStep]) -> Iterator[bool]:
    """Yield True for each stale step; it depends on that step and the ones before it alone."""
    seen: Grams = set()
    last_results: dict[tuple[str, str], str] = {}
    errors: deque[str | None] = deque(maxlen=ERRORS_REMEMBERED)
    for step in steps:
        call, result = (_text(step, "action"), _text(step, "action_input")), _text(step, "observation")
        grams, error = _grams(result), _error_line(result)
        new = len(grams - seen) / len(grams) if grams else 1.0
        repeated = call in last_results and (last_results[call] == result or new < NEW_TO_A_REPEATED_CALL)
        known = len(grams) >= ENOUGH_GRAMS and new < NEW_TO_A_RESULT
        yield repeated or known or (error is not None and error in errors and new < NEW_TO_A_REPEATED_ERROR)
        seen |= grams
        last_results[call] = result
        errors.append(error)


def troubles(stale: Sequence[bool]) -> Iterator[int]:
    """Yield the first step of each lasting trouble; the next one begins 6 steps later at the earliest."""
    start = 0
    while start + TROUBLE_STEPS <= len(stale):
        if stale[start] and sum(stale[start : start + TROUBLE_STEPS]) >= TROUBLE_STALE:
            yield start
            start += TROUBLE_STEPS
        else:
            start += 1


def _text(step: FlatStep, key: str) -> str:
    return str(step.get(key) or "")


def _grams(text: str) -> Grams:
    """Return the word 4-grams; of fewer words, all of them as one."""
    words = _word.findall(text[:RESULT_CHARACTERS])
    if len(words) <= GRAM:
        return {tuple(words)} if words else set()
    return set(zip(*(words[start:] for start in range(GRAM))))


def _error_line(text: str) -> str | None:
    """Return the first line that mentions an error, its digits masked."""
    line = next((line for line in text.splitlines() if _error.search(line)), None)
    return None if line is None else _digits.sub("#", line.strip())[:ERROR_LINE_CHARACTERS]
