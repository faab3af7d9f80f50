"""Evaluates one step with all monitors, from the values that tests vary."""

from __future__ import annotations

from collections.abc import Mapping

from reasonblocks.monitors import evaluate as evaluate_request
from reasonblocks.monitors.builtin import Calibration
from reasonblocks.monitors.suite import SuiteSettings
from reasonblocks.requests import Evaluate
from reasonblocks.types import Evaluation, Injected, Memories, Observed, Step


def evaluate(
    step: Step,
    index: int,
    memories: Memories,
    injected: tuple[Injected, ...],
    task: str,
    weights: Mapping[str, float],
    calibration: Calibration,
    observed: Observed = (),
    **settings: Mapping[str, str],
) -> tuple[Evaluation, Memories]:
    """`settings` are `tool_roles` and `failure_types`."""
    request = Evaluate(
        step=step,
        index=index,
        memories=memories,
        injected=injected,
        task=task,
        profile="coding",
        weights=dict(weights),
        observed=observed,
    )
    return evaluate_request(request, SuiteSettings(calibration=calibration, **settings))
