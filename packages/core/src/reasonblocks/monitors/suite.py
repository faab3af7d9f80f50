"""Evaluates a completed step: the six monitors as views of the account, and the text to inject (MONITORS section 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ..requests import Evaluate
from ..types import Account, Doubt, Evaluation, Memories, Patience, Step
from ..util.text import words
from .builtin import BY_NAME
from .claims import doubts_of
from .patience import is_reached, rung_in_use
from .profile import explores
from .sightings import OWN_MEMORY
from .told import TEXTS, Told, custom_text, text_about

LETTERS: Mapping[str, str] = {"semantic_loop": "ABbCc", "cyclic_compression": "aDd"}
"""The dead steps of each loop monitor; in lower case those that only looked at something."""
DOUBTING = ("claim_contradiction", "verification_skip")
"""Monitors that doubt the end of a run."""
CUSTOM_FIRES = 0.6
"""Score at and above which a caller's own monitor fires."""
NEWEST = 5
"""Steps of which the dead ones make a loop monitor's score."""
DOUBTED, DUE = 0.8, 0.6
"""Scores of a doubted end, and of a trouble that is told whatever the patience."""
SPRAWL, MOST = 40, 0.4
"""Steps without a change at which sprawl has its highest score; it and drift alone open no gate."""
TASK_WORDS = 5
"""Longer words of a task from which on a step can be apart from it."""
LONG_WORD = 5
TASK_HEAD = 2_000
"""Characters of a task in which its longer words are looked for."""
KIND_OF: Mapping[str, str] = {"A": "repeat", "B": "error", "b": "error", "C": "reworded", "c": "reworded", "a": "stale"}
"""The kinds of findings by letter; another letter is the same result of different calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """A client's settings for all monitors. `failure_types` are those of the caller's own monitors, by name."""

    tool_roles: Mapping[str, str] = field(default_factory=dict)
    failure_types: Mapping[str, str] = field(default_factory=dict)


def evaluate(request: Evaluate, settings: SuiteSettings) -> tuple[Evaluation, Memories]:
    """Return the evaluation of the completed step, and the memories unchanged (BEHAVIOUR section 4)."""
    account, index = request.account, request.index
    doubted = [*doubts_of(request.step, index, account, request.patience)]
    scores = _scores(request, [doubt for _, doubt in doubted])
    fired = tuple([name for name in scores if _fires(name, scores[name], request, doubted)])
    parts = {name: request.weights.get(name, 0.0) * score for name, score in scores.items()}
    ranked = sorted(fired, key=lambda name: -parts[name])
    leading = ranked[0] if ranked else None
    quiet = Evaluation(
        fired=fired,
        scores=scores,
        composite=min(1.0, math.fsum(parts.values())),  # `sum` rounds differently before Python 3.12
        failure_type=_failure_type(leading, settings),
        kind=_kind(leading, account, doubted),
        doubts=tuple([doubt for _, doubt in doubted]),
    )
    for name in ranked:
        if spoken := _spoken(name, quiet, request, settings):
            return spoken, request.memories
    return quiet, request.memories


def _scores(request: Evaluate, doubts: list[Doubt]) -> dict[str, float]:
    account = request.account
    newest = account.letters[-NEWEST:]
    scores = dict.fromkeys(BY_NAME, 0.0)
    for name, letters in LETTERS.items():
        scores[name] = sum([newest.count(letter) for letter in letters]) / NEWEST
    if account.did.due:
        scores["semantic_loop"] = max(scores["semantic_loop"], DUE)
    for doubt in doubts:
        scores[doubt.monitor] = DOUBTED
    scores["late_sprawl"] = round(MOST * min(1.0, max(0, request.index - account.mark) / SPRAWL), 4)
    scores["silent_topic_drift"] = MOST if _is_apart(request.step, request.task) else 0.0
    for name, score, _, _ in sorted(request.observed, key=lambda observed: observed[0]):
        scores[name] = score
    return scores


def _is_apart(step: Step, task: str) -> bool:
    """Return True if no longer word of the task is in the step's text."""
    wanted = _long_words(task[:TASK_HEAD])
    return len(wanted) >= TASK_WORDS and bool(step.scored_text) and wanted.isdisjoint(step.scored_words)


@lru_cache(maxsize=64)
def _long_words(task: str) -> frozenset[str]:
    return frozenset([word for word in words(task) if len(word) >= LONG_WORD])


def _fires(name: str, score: float, request: Evaluate, doubted: list[tuple[str, Doubt]]) -> bool:
    account = request.account
    if name in LETTERS:
        due = bool(account.did.due) and name == "semantic_loop"
        return due or (account.did.dead and account.letters[-1:] in LETTERS[name])
    if name in BY_NAME:
        return any(doubt.monitor == name for _, doubt in doubted)
    return score >= CUSTOM_FIRES


def _failure_type(name: str | None, settings: SuiteSettings) -> str | None:
    if name is None:
        return None
    return BY_NAME[name].failure_type if name in BY_NAME else settings.failure_types.get(name, name)


def _kind(name: str | None, account: Account, doubted: list[tuple[str, Doubt]]) -> str | None:
    """Return the kind of a monitor's finding; None for a caller's monitor."""
    if name in LETTERS:
        did, letter = account.did, account.letters[-1:]
        if did.due and name == "semantic_loop":
            return "unmoved" if did.due == "check" else "failing"
        if letter == "A" and (did.waiting or did.failed):
            return "waiting" if did.waiting else "retry"
        return KIND_OF.get(letter, "same_result")
    return next((kind for kind, doubt in doubted if doubt.monitor == name), None)


def _spoken(name: str, quiet: Evaluation, request: Evaluate, settings: SuiteSettings) -> Evaluation | None:
    """Return the evaluation with this monitor's text, if it is to be told now."""
    index, account = request.index, request.account
    if name in DOUBTING or sum(told.monitor == name for told in request.injected) >= TEXTS:
        return None
    if name in LETTERS:
        if not is_told(account, request.patience):
            return None
        told = text_about(request.step, index, account, request.memories.get(OWN_MEMORY), settings.tool_roles)
        path = "patience"
    else:
        steps = next(steps for one, _, _, steps in request.observed if one == name) or (index,)
        since = max((told.step for told in request.injected), default=0)
        told = Told(custom_text(name, steps, index) if max(steps) >= since else "")
        path = "custom"
    if not told.fact or told.waits:
        return None
    return Evaluation(
        inject=True,
        intervention_text=told.text,
        fact=told.fact,
        hint=told.hint,
        fired=quiet.fired,
        scores=quiet.scores,
        composite=quiet.composite,
        failure_type=quiet.failure_type,
        injection_path=path,
        intervention_source="monitor",
        monitor=name,
        kind=_kind(name, account, []),
        doubts=quiet.doubts,
    )


def is_told(account: Account, patience: Patience) -> bool:
    """Return True if the patience is reached, or the step is due whatever it is."""
    if account.did.due:
        return not explores(patience)
    rung = rung_in_use(patience)
    return rung is not None and is_reached(account.letters, rung)
