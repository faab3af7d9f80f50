"""Evaluates the monitors in this process: the same code that a server would run."""

from __future__ import annotations

from collections.abc import Mapping

from .._monitors import suite
from .._monitors.builtin import Calibration
from .._requests import Evaluate
from ..types import Evaluation, Memories


class LocalEvaluator:
    """Runs the monitors in place. `tool_roles` and `failure_types` are the caller's own declarations."""

    inline = True
    """Pure and bounded by its input: it needs no worker, and its answers are not validated again."""
    __slots__ = ("_calibration", "_failure_types", "_tool_roles")

    def __init__(
        self,
        calibration: Calibration,
        tool_roles: Mapping[str, str] | None = None,
        failure_types: Mapping[str, str] | None = None,
    ) -> None:
        self._calibration = calibration
        self._tool_roles = dict(tool_roles or {})
        self._failure_types = dict(failure_types or {})

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        return suite.evaluate(
            request.step,
            request.index,
            request.memories,
            request.injected,
            request.task,
            request.weights,
            self._calibration,
            observed=request.observed,
            tool_roles=self._tool_roles,
            failure_types=self._failure_types,
        )
