"""Combines all monitors into the evaluation of a completed step: scores, fired monitors, and the text to inject."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ..requests import Evaluate
from ..types import JSON, Doubt, Evaluation, Injected, Memories
from ..util.json import evolve
from . import indicators, novelty, persistence, recall, untried
from .builtin import BY_NAME, MONITORS, WEIGHTS, Calibration
from .features import Features, features_of, plain
from .finding import Finding
from .indicators import INDICATORS
from .kinds import TYPES
from .memory import fraction, names, table
from .recall import Recall
from .wording import STALE_ADVICE, in_vain, told, turns

MIN_STEPS = 2
"""Steps from which on indicators are named in a text."""


def hints(shown: Mapping[str, tuple[int, ...]], usual: Mapping[str, float], quiet: float) -> dict[str, Finding]:
    """Return findings by monitor, for scores by indicators above `quiet` that have enough steps to name."""
    return {
        name: Finding(score=usual[name], steps=steps)
        for name, steps in shown.items()
        if len(steps) >= MIN_STEPS and usual[name] > quiet
    }


def hint_text(finding: Finding, rung: int, past: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    return told(past, finding.steps, rung, in_vain, STALE_ADVICE)


QUIET = 0.1
"""A monitor's score if nothing was found and its indicators are at their centres."""
MAX_BY_INDICATORS = 0.44
"""The highest score by indicators alone: below every threshold, also that of a relapse."""
CUSTOM_FIRES = 0.6
"""Score at and above which a caller's own monitor fires."""
RELAPSE_FACTOR = 0.75
"""Share of its threshold at which a monitor fires that has fired in this run before."""
RUNGS = 3
"""Texts of one monitor: the evidence, a firmer and shorter one, a request for another kind of step."""
PATIENT = frozenset({"error", "failing", "retry", "reworded", "stale", "barren", "away", "same_result"})
"""Kinds of findings that agents recover from by themselves in a fifth to a half of all cases, unless the trouble is
likely to last. Of the others, an exact repetition lasts in 19 of 20 cases, and the rest are not about results."""
VAGUE = frozenset({"barren", "away"})
"""Kinds of findings that name no single trouble; they are told only if it is all but certain that it lasts."""
VAGUE_FROM = 0.9
"""The chance that trouble lasts from which on these are told."""
PLAIN = 3
"""Equal calls with equal results from which on they are told at once: many agents read something twice."""
EVEN = 0.5
"""The chance that trouble lasts from which on two such calls are told."""
ABOUT_NEWS = frozenset({"stale", "churn", "barren", "sprawl", "away", "drift"})
"""Kinds of findings about what results bring, not about errors."""
DOUBTING = ("claim_contradiction", "verification_skip")
"""Monitors whose finding in the last step contradicts a run's own claim of success."""
OWN_MEMORY = "_suite"
"""The key of the suite's own memory among those of the monitors; snapshots have it."""


@dataclass(slots=True, kw_only=True)  # not frozen, because each step makes one and a frozen one takes twice as long
class _StepScores:
    """The part of an evaluation that depends on the steps alone, not on earlier injections.

    `parts` has weight x score of each monitor, `before` is the composite one step earlier, and `needed` its threshold.
    """

    findings: Mapping[str, Finding]
    hints: Mapping[str, Finding]
    scores: Mapping[str, float]
    parts: Mapping[str, float]
    fired: tuple[str, ...]
    composite: float
    before: float
    needed: float

    def opens(self, spent: float = 0.0) -> bool:
        """Return True if the composite, less `spent`, is at its threshold for the second step running."""
        return min(self.before, self.composite - spent) >= self.needed

    @property
    def ranked(self) -> list[str]:
        """All monitors, the largest part first; equal ones in table order."""
        return sorted(self.parts, key=lambda name: -self.parts[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """A client's settings for all monitors. `failure_types` are those of the caller's own monitors, by name."""

    calibration: Calibration
    tool_roles: Mapping[str, str] = field(default_factory=dict)
    failure_types: Mapping[str, str] = field(default_factory=dict)


def evaluate(request: Evaluate, settings: SuiteSettings) -> tuple[Evaluation, Memories]:
    """Return the evaluation of the completed step, and new memories (BEHAVIOUR section 4). No argument is changed."""
    memories, calibration = request.memories, settings.calibration
    brought, known = request.novelty, memories.get(novelty.OWN_MEMORY)
    if brought is None:
        brought, known = novelty.observe(request.step, known)
    features = features_of(request.step, request.index, request.task, settings.tool_roles, brought)
    left: dict[str, JSON] = {novelty.OWN_MEMORY: known}
    left[persistence.OWN_MEMORY] = _estimate(features, memories.get(persistence.OWN_MEMORY), calibration)
    findings = {row.name: row.observe(features, memories.get(row.name)) for row in MONITORS}
    for name, score, memory, steps in sorted(request.observed, key=lambda observation: observation[0]):
        findings[name] = Finding(score=score, memory=memory, steps=tuple(steps) or (request.index,))
    gathered, kept = indicators.gather(features, memories.get(indicators.OWN_MEMORY))
    own = table(memories.get(OWN_MEMORY))
    usual = by_indicators(gathered, calibration)
    hinted = hints(indicators.shown(kept), usual, QUIET)
    scored = _scored(findings, hinted, usual, request.weights, own, calibration)
    left.update({name: finding.memory for name, finding in findings.items()})
    left[indicators.OWN_MEMORY] = kept
    left[OWN_MEMORY] = {
        "composite": scored.composite,
        "fired": [*dict.fromkeys((*names(own, "fired"), *scored.fired))],
    }
    step, roles = request.step, settings.tool_roles
    left[recall.OWN_MEMORY] = recall.remember(features, step, memories.get(recall.OWN_MEMORY), roles)
    left[untried.OWN_MEMORY] = untried.gather(features, step, memories.get(untried.OWN_MEMORY), roles)
    lasts = features.stale and not features.changed and features.lasting >= calibration.persistence.threshold
    moment = _Moment(
        index=request.index,
        lasts=lasts,
        lasting=features.lasting,
        failing=features.failing,
    )
    evaluation = _evaluation(scored, request, settings.failure_types, left, moment)
    doubts = _doubts(scored, Recall(left, request.index)) if scored.fired else ()
    return (evolve(evaluation, doubts=doubts) if doubts else evaluation), left


def _estimate(features: Features, memory: JSON, calibration: Calibration) -> JSON:
    """Complete the features by the chance that the trouble lasts; return the memory for it."""
    numbers, kept = persistence.measure(features, memory)
    persistence.complete(features, numbers, kept, calibration.persistence)
    return kept


def by_indicators(gathered: Mapping[str, float], calibration: Calibration) -> dict[str, float]:
    """Return each monitor's score by its indicators alone; with the default weights they add up to the composite."""
    scores, shares = dict.fromkeys(BY_NAME, QUIET), WEIGHTS["coding"]
    for name, indicator in calibration.evidence.items():
        monitor = INDICATORS[name]
        scores[monitor] += indicator.weight * (gathered[name] - indicator.centre) / shares[monitor]
    for monitor, score in scores.items():
        if score != QUIET:  # that value is within the bounds and needs no rounding
            scores[monitor] = round(min(MAX_BY_INDICATORS, max(0.0, score)), 4)
    return scores


def _scored(
    findings: Mapping[str, Finding],
    hinted: Mapping[str, Finding],
    usual: Mapping[str, float],
    weights: Mapping[str, float],
    own: Mapping[str, JSON],
    calibration: Calibration,
) -> _StepScores:
    known = names(own, "fired")
    scores: dict[str, float] = {}
    parts: dict[str, float] = {}
    fired = []
    for name, finding in findings.items():
        scores[name] = max(finding.score, usual.get(name, 0.0))
        parts[name] = weights.get(name, 0.0) * scores[name]
        if finding.score > 0.0 and _fires(name, finding, known, calibration):
            fired.append(name)
    return _StepScores(
        findings=findings,
        hints=hinted,
        scores=scores,
        parts=parts,
        fired=tuple(fired),
        composite=min(1.0, math.fsum(parts.values())),  # `sum` rounds differently before Python 3.12
        before=fraction(own, "composite"),
        needed=calibration.composite,
    )


def _fires(name: str, finding: Finding, known: Collection[str], calibration: Calibration) -> bool:
    threshold = calibration.fires.get(name, CUSTOM_FIRES) * (RELAPSE_FACTOR if name in known else 1.0)
    return finding.score >= threshold


def _evaluation(
    scored: _StepScores, request: Evaluate, failure_types: Mapping[str, str], memories: Memories, moment: _Moment
) -> Evaluation:
    leading, injected = _leading(scored), request.injected
    quiet = Evaluation(
        fired=scored.fired,
        scores=dict(scored.scores),
        composite=scored.composite,
        persistence=moment.lasting,
        failure_type=_failure_type(leading, failure_types),
        kind=_kind(leading, scored.findings) if leading in scored.fired else None,
    )
    for speaker, path in _speakers(scored, injected, moment):
        text = _text(speaker, scored, injected, Recall(memories, request.index))
        if text:  # the next monitor is heard if the steps that this one found can no longer be named
            return evolve(
                quiet,
                inject=True,
                intervention_text=text,
                injection_path=path,
                intervention_source="monitor",
                monitor=speaker,
                kind=None if _is_hint(speaker, scored, injected) else moment.kind(speaker, scored.findings),
            )
    return quiet


def _doubts(scored: _StepScores, past: Recall) -> tuple[Doubt, ...]:
    """Return the doubts that the newest step itself raises; an earlier finding may be resolved by now."""
    doubting = [name for name in DOUBTING if name in scored.fired and past.index in scored.findings[name].steps]
    said = [(name, BY_NAME[name].say(scored.findings[name], 1, past)) for name in doubting]
    return tuple([Doubt(monitor=name, text=text) for name, text in said if text])


def _leading(scored: _StepScores) -> str | None:
    """Return the monitor with the largest part: of the fired ones, else of all if the composite is enough."""
    if not scored.fired and not scored.opens():
        return None
    return next(name for name in scored.ranked if name in (scored.fired or scored.parts))


def _failure_type(leading: str | None, failure_types: Mapping[str, str]) -> str | None:
    if leading is None:
        return None
    return BY_NAME[leading].failure_type if leading in BY_NAME else failure_types.get(leading, leading)


def _kind(name: str | None, findings: Mapping[str, Finding]) -> str | None:
    """Return the kind of a monitor's finding; None for a caller's monitor, and for a kind of another failure type."""
    if name is None or name not in BY_NAME:
        return None
    own = BY_NAME[name].failure_type
    kind = str(findings[name].facts.get("kind") or own)
    return kind if TYPES.get(kind, own) == own else None


def _speakers(scored: _StepScores, injected: tuple[Injected, ...], moment: _Moment) -> Iterator[tuple[str, str]]:
    """Yield the monitors that may speak, the one to be heard first, and the path: fired ones, then the composite's."""
    if not scored.fired and not scored.opens():
        return
    fresh = [name for name in scored.ranked if _rung(name, injected) <= RUNGS and _fresh(scored, name, injected)]
    for name in fresh:
        if name in scored.fired and (name not in BY_NAME or moment.suits(name, scored.findings[name])):
            yield name, "monitor"
    spent = math.fsum(part for name, part in scored.parts.items() if _rung(name, injected) > RUNGS)
    if scored.opens(spent):
        for name in fresh:
            if moment.lasts or name not in BY_NAME:
                yield name, "composite"


@dataclass(slots=True, kw_only=True)
class _Moment:
    """The moment after step `index`: whether trouble is likely to last, its chance, and whether the step failed."""

    index: int
    lasts: bool
    lasting: float
    failing: bool

    def suits(self, name: str, finding: Finding) -> bool:
        """Return True if this finding may be told now.

        One about claims may always be. One about results is told at its own step; and if agents recover from it by
        themselves, only when the trouble is likely to last.
        """
        if name in DOUBTING:
            return True
        kind = finding.facts.get("kind")
        if self.lasts:
            return self.index in finding.steps and (kind not in VAGUE or self.lasting >= VAGUE_FROM)
        if kind in PATIENT or (kind == "repeat" and len(finding.steps) < PLAIN and self.lasting < EVEN):
            return False
        return self.index in finding.steps

    def kind(self, name: str, findings: Mapping[str, Finding]) -> str | None:
        """Return the kind to which a lesson may be tied; none if the text is about an error, and the finding is not."""
        found = _kind(name, findings)
        return None if self.failing and found in ABOUT_NEWS else found


def _fresh(scored: _StepScores, name: str, injected: tuple[Injected, ...]) -> bool:
    """Return True if the monitor has a finding from after the last injection."""
    since = _since(injected)
    return _is_new(scored.findings[name], since) or (name in scored.hints and _is_new(scored.hints[name], since))


def _since(injected: tuple[Injected, ...]) -> int:
    """Return the first step after the last injection: one at call n came after the completed steps 0 to n-1."""
    return max((injection.step for injection in injected), default=0)


def _is_new(finding: Finding, since: int) -> bool:
    return finding.score > 0.0 and any(step >= since for step in finding.steps)


def _rung(name: str, injected: tuple[Injected, ...]) -> int:
    return 1 + sum(injection.monitor == name for injection in injected)


def _is_hint(name: str, scored: _StepScores, injected: tuple[Injected, ...]) -> bool:
    """Return True if the text is about indicators: a new finding takes precedence over them."""
    return name in scored.hints and not _is_new(scored.findings[name], _since(injected))


def _text(name: str, scored: _StepScores, injected: tuple[Injected, ...], past: Recall) -> str:
    finding, rung = scored.findings[name], _rung(name, injected)
    if _is_hint(name, scored, injected):
        return hint_text(scored.hints[name], rung, past)
    if name in BY_NAME:
        return BY_NAME[name].say(finding, rung, past)
    return f"The check {plain(name)} points at {turns(past, finding.steps)}. {_CUSTOM_NEXT[rung]}"


_CUSTOM_NEXT = {
    1: "Look at that again before you go on.",
    2: "Settle that now, before anything else.",
    3: "It is still open: take a step of another kind to settle it.",
}
