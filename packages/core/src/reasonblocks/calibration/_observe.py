"""What the monitors saw in one finished run, step by step: all that a fit needs of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..monitors import evidence
from ..monitors.builtin import MONITORS
from ..monitors.features import features_of
from ..scoring import SHIPPED_LEVEL, calm_of, score
from ..traces import RecordedRun
from ..types import JSON, ScoreMemory

__all__ = ["Observed", "by_source", "observed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Of each step: the evidence gathered so far, what each monitor found, the raw difficulty without its errors."""

    source: str
    task_key: str
    failed: bool
    stopped_at_success: bool
    evidence: tuple[Mapping[str, float], ...]
    findings: tuple[Mapping[str, float], ...]
    calm: tuple[float, ...]


def observed(run: RecordedRun, tool_roles: Mapping[str, str] | None = None) -> Observed:
    """What a fit needs of the run, whose outcome must be known."""
    memories: dict[str, JSON] = {}
    gathered, findings, calm = [], [], []
    so_far = ScoreMemory()
    for index, step in enumerate(run.steps):
        features = features_of(step, index, run.task or "", tool_roles or {})
        said, memories[evidence.OWN_MEMORY] = evidence.gather(features, memories.get(evidence.OWN_MEMORY))
        found = {row.name: row.observe(features, memories.get(row.name)) for row in MONITORS}
        memories.update({name: finding.memory for name, finding in found.items()})
        gathered.append(said)
        findings.append({name: finding.score for name, finding in found.items()})
        _, parts, so_far = score(step, so_far, SHIPPED_LEVEL)
        calm.append(calm_of(parts))
    return Observed(
        source=run.source or "",
        task_key=run.task_key,
        failed=(run.outcome or "").startswith("failure"),
        stopped_at_success=bool(run.oracle_stop),
        evidence=tuple(gathered),
        findings=tuple(findings),
        calm=tuple(calm),
    )


def by_source(runs: Sequence[Observed]) -> dict[str, list[Observed]]:
    """In the order in which the sources come."""
    sources: dict[str, list[Observed]] = {}
    for run in runs:
        sources.setdefault(run.source, []).append(run)
    return sources
