"""What all monitors together say of a completed step: scores, what fired, whether to speak, for which monitor."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from .._json import evolve
from ..types import JSON, Doubt, Evaluation, Injected, Memories, Observed, Step
from . import evidence
from .builtin import BY_NAME, MONITORS, WEIGHTS, Calibration
from .evidence import EVIDENCE
from .features import features_of, plain
from .finding import Finding, at_steps, table

FEWEST = 2
"""Steps that evidence needs to be named."""


def hints(shown: Mapping[str, tuple[int, ...]], usual: Mapping[str, float], quiet: float) -> dict[str, Finding]:
    """By monitor, of those whose score by evidence is above the quiet one and that have steps to name."""
    return {
        name: Finding(score=usual[name], evidence=steps)
        for name, steps in shown.items()
        if len(steps) >= FEWEST and usual[name] > quiet
    }


def hint_text(finding: Finding, rung: int) -> str:
    """Rung 1 the evidence, 2 firmer and shorter, 3 wrap up."""
    return f"{at_steps(finding.evidence)} failed, or brought a result that was there before. {_NEXT[rung]}"


_NEXT = {
    1: "Say in one line what they have shown, and take the step that would show something new.",
    2: "Leave this way now and try one that was not tried.",
    3: "Wrap up: give the best answer that the results so far support, and say what did not work.",
}


QUIET = 0.1
"""A monitor's score where nothing was found and the evidence is as usual."""
MAX_BY_EVIDENCE = 0.44
"""What evidence alone raises a score to: below what fires, the first time and on a relapse."""
CUSTOM_FIRES = 0.6
"""Score at and above which a caller's own monitor fires."""
RELAPSE_FACTOR = 0.75
"""A monitor that has fired in this run fires again at this share of its threshold."""
RUNGS = 3
"""Texts that one monitor has: the evidence, firmer and shorter, wrap up."""
DOUBTING = ("claim_contradiction", "verification_skip")
"""Monitors whose finding in the last step contradicts a run's own claim of success."""
OWN_MEMORY = "_suite"
"""Where the suite keeps its own memory among those of the monitors."""
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the steps alone say. `parts` is weight x score of each monitor; `before` the composite one
    step earlier, `needed` what it needs twice to open the gate."""

    findings: Mapping[str, Finding]
    hints: Mapping[str, Finding]
    scores: Mapping[str, float]
    parts: Mapping[str, float]
    fired: tuple[str, ...]
    composite: float
    before: float
    needed: float

    def opens(self, spent: float = 0.0) -> bool:
        """Is the composite, without what is `spent`, high enough for the second time running?"""
        return min(self.before, self.composite - spent) >= self.needed

    @property
    def ranked(self) -> list[str]:
        """Every monitor, the one that contributes most first; equal ones in table order."""
        return sorted(self.parts, key=lambda name: -self.parts[name])


def evaluate(
    step: Step,
    index: int,
    memories: Memories,
    injected: tuple[Injected, ...],
    task: str,
    weights: Mapping[str, float],
    calibration: Calibration,
    observed: Observed = (),
    tool_roles: Mapping[str, str] = _NO_NAMES,
    failure_types: Mapping[str, str] = _NO_NAMES,
) -> tuple[Evaluation, Memories]:
    """The evaluation of completed step `index`, and the memories after it (BEHAVIOUR section 4).

    `weights` are resolved ones, `calibration` says what fires; `observed` is what the caller's monitors said of this
    step, `failure_types` theirs. Nothing that is given is changed.
    """
    features = features_of(step, index, task, tool_roles)
    findings = {row.name: row.observe(features, memories.get(row.name)) for row in MONITORS}
    for name, score, memory, steps in sorted(observed, key=lambda one: one[0]):
        findings[name] = Finding(score=score, memory=memory, evidence=tuple(steps) or (index,))
    gathered, kept = evidence.gather(features, memories.get(evidence.OWN_MEMORY))
    own = table(memories.get(OWN_MEMORY))
    usual = by_evidence(gathered, calibration)
    hinted = hints(evidence.shown(kept), usual, QUIET)
    seen = _seen(findings, hinted, usual, weights, own, calibration)
    left: dict[str, JSON] = {name: finding.memory for name, finding in findings.items()}
    left[evidence.OWN_MEMORY] = kept
    fired = cast("list[str]", own.get("fired") or [])
    left[OWN_MEMORY] = {"composite": seen.composite, "fired": [*dict.fromkeys((*fired, *seen.fired))]}
    evaluation = _evaluation(seen, injected, failure_types)
    doubts = _doubts(seen, index) if seen.fired else ()
    return (evolve(evaluation, doubts=doubts) if doubts else evaluation), left


def by_evidence(gathered: Mapping[str, float], calibration: Calibration) -> dict[str, float]:
    """Each monitor's score by its evidence alone: with the default weights they add up to the composite."""
    scores, shares = dict.fromkeys(BY_NAME, QUIET), WEIGHTS["coding"]
    for name, weighed in calibration.evidence.items():
        monitor = EVIDENCE[name]
        scores[monitor] += weighed.weight * (gathered[name] - weighed.centre) / shares[monitor]
    for monitor, score in scores.items():
        if score != QUIET:  # which is as round as it gets
            scores[monitor] = round(min(MAX_BY_EVIDENCE, max(0.0, score)), 4)
    return scores


def _seen(
    findings: Mapping[str, Finding],
    hinted: Mapping[str, Finding],
    usual: Mapping[str, float],
    weights: Mapping[str, float],
    own: Mapping[str, JSON],
    calibration: Calibration,
) -> _Seen:
    known = cast("list[str]", own.get("fired") or [])
    scores: dict[str, float] = {}
    parts: dict[str, float] = {}
    fired = []
    for name, finding in findings.items():
        scores[name] = max(finding.score, usual.get(name, 0.0))
        parts[name] = weights.get(name, 0.0) * scores[name]
        if finding.score > 0.0 and _fires(name, finding, known, calibration):
            fired.append(name)
    return _Seen(
        findings=findings,
        hints=hinted,
        scores=scores,
        parts=parts,
        fired=tuple(fired),
        composite=min(1.0, math.fsum(parts.values())),  # `sum` rounds otherwise before Python 3.12
        before=cast("float", own.get("composite", 0.0)),
        needed=calibration.composite,
    )


def _fires(name: str, finding: Finding, known: Collection[str], calibration: Calibration) -> bool:
    threshold = calibration.fires.get(name, CUSTOM_FIRES) * (RELAPSE_FACTOR if name in known else 1.0)
    return finding.score >= threshold


def _evaluation(seen: _Seen, injected: tuple[Injected, ...], failure_types: Mapping[str, str]) -> Evaluation:
    quiet = Evaluation(
        fired=seen.fired,
        scores=dict(seen.scores),
        composite=seen.composite,
        failure_type=_failure_type(seen, failure_types),
    )
    speaker, path = _speaker(seen, injected)
    if speaker is None:
        return quiet
    return evolve(
        quiet,
        inject=True,
        intervention_text=_text(speaker, seen, injected),
        injection_path=path,
        intervention_source="monitor",
        monitor=speaker,
    )


def _doubts(seen: _Seen, index: int) -> tuple[Doubt, ...]:
    """Return the doubts that step `index` itself shows; an earlier finding may be resolved by now."""
    names = [name for name in DOUBTING if name in seen.fired and index in seen.findings[name].evidence]
    return tuple([Doubt(monitor=name, text=BY_NAME[name].say(seen.findings[name], 1)) for name in names])


def _failure_type(seen: _Seen, failure_types: Mapping[str, str]) -> str | None:
    """Of the monitor that contributes most: among the fired, else among all when the composite opens the gate."""
    if not seen.fired and not seen.opens():
        return None
    leading = next(name for name in seen.ranked if name in (seen.fired or seen.parts))
    return BY_NAME[leading].failure_type if leading in BY_NAME else failure_types.get(leading, leading)


def _speaker(seen: _Seen, injected: tuple[Injected, ...]) -> tuple[str | None, str | None]:
    """Who speaks, and by which path: a fired monitor that has something new, else the composite's largest part."""
    if not seen.fired and not seen.opens():
        return None, None
    fresh = [name for name in seen.ranked if _rung(name, injected) <= RUNGS and _fresh(seen, name, injected)]
    fired = [name for name in fresh if name in seen.fired]
    if fired:
        return fired[0], "monitor"
    spent = math.fsum(part for name, part in seen.parts.items() if _rung(name, injected) > RUNGS)
    if fresh and seen.opens(spent):
        return fresh[0], "composite"
    return None, None


def _fresh(seen: _Seen, name: str, injected: tuple[Injected, ...]) -> bool:
    """Is there something to tell from after the last injection?"""
    since = _since(injected)
    return _able(seen.findings[name], since) or (name in seen.hints and _able(seen.hints[name], since))


def _since(injected: tuple[Injected, ...]) -> int:
    return max((one.step for one in injected), default=0)


def _able(finding: Finding, since: int) -> bool:
    """One injected at call n came after the completed steps 0 to n-1."""
    return finding.score > 0.0 and any(step >= since for step in finding.evidence)


def _rung(name: str, injected: tuple[Injected, ...]) -> int:
    return 1 + sum(one.monitor == name for one in injected)


def _text(name: str, seen: _Seen, injected: tuple[Injected, ...]) -> str:
    finding, rung = seen.findings[name], _rung(name, injected)
    if name in seen.hints and not _able(finding, _since(injected)):  # what it found is told, or nothing
        return hint_text(seen.hints[name], rung)
    if name in BY_NAME:
        return BY_NAME[name].say(finding, rung)
    return f"The check {plain(name)} points at {at_steps(finding.evidence).lower()}. {_CUSTOM_NEXT[rung]}"


_CUSTOM_NEXT = {
    1: "Look at that again before you go on.",
    2: "Settle that now, before anything else.",
    3: "Wrap up: give the best answer that the results so far support.",
}
