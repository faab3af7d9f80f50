"""What all monitors together say of a completed step: scores, what fired, whether to speak, for which monitor."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

from ..types import JSON, Evaluation, Injected, Memories, Observed, Step, quick
from .builtin import BY_NAME, MONITORS
from .features import features_of, plain
from .finding import Finding, at_steps, table
from .weights import WEIGHTS, resolve_weights

__all__ = [
    "COMPOSITE_FIRES",
    "CUSTOM_FIRES",
    "MONITORS",
    "OWN_MEMORY",
    "RELAPSE_FACTOR",
    "RUNGS",
    "WEIGHTS",
    "evaluate",
    "resolve_weights",
]

COMPOSITE_FIRES = 0.35
"""Composite at and above which, on two steps running, the gate opens. No monitor reaches it alone with `coding`."""
CUSTOM_FIRES = 0.6
"""Score at and above which a caller's own monitor fires."""
RELAPSE_FACTOR = 0.75
"""A monitor that has fired in this run fires again at this share of its threshold."""
RUNGS = 3
"""Texts that one monitor has: the evidence, firmer and shorter, wrap up."""
OWN_MEMORY = "_suite"
"""Where the suite keeps its own memory among those of the monitors."""
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the steps alone say. `parts` is weight x score of each monitor, `before` the composite one step earlier."""

    findings: Mapping[str, Finding]
    parts: Mapping[str, float]
    fired: tuple[str, ...]
    composite: float
    before: float

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
    observed: Observed = (),
    tool_roles: Mapping[str, str] = _NO_NAMES,
    failure_types: Mapping[str, str] = _NO_NAMES,
) -> tuple[Evaluation, Memories]:
    """The evaluation of completed step `index`, and the memories after it (BEHAVIOUR section 4).

    `weights` are resolved ones; `observed` is what the caller's monitors said of this step, `failure_types` theirs.
    Nothing that is given is changed.
    """
    features = features_of(step, index, task, tool_roles)
    findings = {row.name: row.observe(features, memories.get(row.name)) for row in MONITORS}
    for name, score, memory, evidence in sorted(observed, key=lambda one: one[0]):
        findings[name] = Finding(score=score, memory=memory, evidence=tuple(evidence) or (index,))
    own = table(memories.get(OWN_MEMORY))
    known = cast("list[str]", own.get("fired") or [])
    seen = _seen(findings, weights, known, cast("float", own.get("composite", 0.0)))
    left: dict[str, JSON] = {name: finding.memory for name, finding in findings.items()}
    left[OWN_MEMORY] = {"composite": seen.composite, "fired": [*dict.fromkeys((*known, *seen.fired))]}
    return _evaluation(seen, injected, failure_types), left


def _seen(
    findings: Mapping[str, Finding], weights: Mapping[str, float], known: Collection[str], before: float
) -> _Seen:
    parts = {name: weights.get(name, 0.0) * finding.score for name, finding in findings.items()}
    return _Seen(
        findings=findings,
        parts=parts,
        fired=tuple([name for name, finding in findings.items() if finding.score and _fires(name, finding, known)]),
        composite=min(1.0, math.fsum(parts.values())),  # `sum` rounds otherwise before Python 3.12
        before=before,
    )


def _fires(name: str, finding: Finding, known: Collection[str]) -> bool:
    threshold = BY_NAME[name].fires if name in BY_NAME else CUSTOM_FIRES
    return finding.score >= (threshold * RELAPSE_FACTOR if name in known else threshold)


def _evaluation(seen: _Seen, injected: tuple[Injected, ...], failure_types: Mapping[str, str]) -> Evaluation:
    quiet = Evaluation(
        fired=seen.fired,
        scores={name: finding.score for name, finding in seen.findings.items()},
        composite=seen.composite,
        failure_type=_failure_type(seen, failure_types),
    )
    speaker, path = _speaker(seen, injected)
    if speaker is None:
        return quiet
    return replace(
        quiet,
        inject=True,
        intervention_text=_text(speaker, seen.findings[speaker], _rung(speaker, injected)),
        injection_path=path,
        intervention_source="monitor",
        monitor=speaker,
    )


def _failure_type(seen: _Seen, failure_types: Mapping[str, str]) -> str | None:
    """Of the monitor that contributes most: among the fired, else among all when the composite opens the gate."""
    if not seen.fired and min(seen.before, seen.composite) < COMPOSITE_FIRES:
        return None
    leading = next(name for name in seen.ranked if name in (seen.fired or seen.parts))
    return BY_NAME[leading].failure_type if leading in BY_NAME else failure_types.get(leading, leading)


def _speaker(seen: _Seen, injected: tuple[Injected, ...]) -> tuple[str | None, str | None]:
    """Who speaks, and by which path: a fired monitor that has something new, else the composite's largest part."""
    if not seen.fired and min(seen.before, seen.composite) < COMPOSITE_FIRES:
        return None, None
    since = max((one.step for one in injected), default=0)
    able = [name for name in seen.ranked if _able(seen.findings[name], since) and _rung(name, injected) <= RUNGS]
    fired = [name for name in able if name in seen.fired]
    if fired:
        return fired[0], "monitor"
    spent = math.fsum(part for name, part in seen.parts.items() if _rung(name, injected) > RUNGS)
    if able and min(seen.before, seen.composite - spent) >= COMPOSITE_FIRES:
        return able[0], "composite"
    return None, None


def _able(finding: Finding, since: int) -> bool:
    """Is there evidence from after the last injection? One at call n came after the completed steps 0 to n-1."""
    return finding.score > 0.0 and any(step >= since for step in finding.evidence)


def _rung(name: str, injected: tuple[Injected, ...]) -> int:
    return 1 + sum(one.monitor == name for one in injected)


def _text(name: str, finding: Finding, rung: int) -> str:
    if name in BY_NAME:
        return BY_NAME[name].say(finding, rung)
    return f"The check {plain(name)} points at {at_steps(finding.evidence).lower()}. {_CUSTOM_NEXT[rung]}"


_CUSTOM_NEXT = {
    1: "Look at that again before you go on.",
    2: "Settle that now, before anything else.",
    3: "Wrap up: give the best answer that the results so far support.",
}
