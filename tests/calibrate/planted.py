"""Runs made for the fit: every evidence as it is told to be, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reasonblocks.monitors.builtin import BY_NAME
from reasonblocks.monitors.indicators import INDICATORS
from reasonblocks_workbench.calibration import Observed

STEPS = 10


def planted(
    number: int,
    *,
    failed: bool,
    evidence: Callable[[int], Mapping[str, float]] = lambda step: {},
    findings: Mapping[str, float] | None = None,
    steps: int = STEPS,
    source: str = "agent",
    calm: float = 0.1,
    stopped: bool = False,
) -> Observed:
    """A run, and a task of its own. `evidence` is told the step, from 1; what is missing is 0."""
    found = {**dict.fromkeys(BY_NAME, 0.0), **(findings or {})}
    return Observed(
        source=source,
        task_key=f"{source} {number}",
        failed=failed,
        stopped_at_success=stopped,
        evidence=tuple({**dict.fromkeys(INDICATORS, 0.0), **evidence(step)} for step in range(1, steps + 1)),
        findings=(found,) * steps,
        calm=(calm,) * steps,
        numbers=tuple((0.5, 0.0, float(step % 3 == 0), 0.0) for step in range(steps)),
        stale=tuple(step > steps // 2 for step in range(steps)),
    )


def steady(evidence: Mapping[str, float]) -> Callable[[int], Mapping[str, float]]:
    """The same at every step."""
    return lambda step: evidence


def telling(runs: int, name: str = "same_result", *, share: float = 0.75, source: str = "agent") -> list[Observed]:
    """Half of the runs fail; the evidence is high in that share of them, and in as many less of the others."""
    found = []
    for number in range(runs):
        failed = number % 2 == 0
        high = (number // 2) % 20 < 20 * (share if failed else 1 - share)
        found.append(planted(number, failed=failed, evidence=steady({name: 0.6 if high else 0.1}), source=source))
    return found
