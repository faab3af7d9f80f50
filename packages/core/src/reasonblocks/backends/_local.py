"""Evaluates the monitors in this process: the same code that a server would run."""

from __future__ import annotations

from collections.abc import Mapping

from .._json import evolve
from .._monitors import suite
from .._monitors.builtin import Calibration
from .._own_level import with_own_level
from .._requests import Evaluate
from ..types import Evaluation, Memories


class LocalEvaluator:
    """Runs the monitors in place. `tool_roles` and `failure_types` are the caller's own declarations."""

    inline = True
    """Pure and bounded by its input: it needs no worker, and its answers are not validated again."""
    __slots__ = ("_settings",)

    def __init__(
        self,
        calibration: Calibration,
        tool_roles: Mapping[str, str] | None = None,
        failure_types: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = suite.SuiteSettings(
            calibration=calibration,
            tool_roles=dict(tool_roles or {}),
            failure_types=dict(failure_types or {}),
        )

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        settings = self._settings
        if request.own_level is not None:
            settings = evolve(settings, calibration=with_own_level(settings.calibration, request.own_level))
        return suite.evaluate(request, settings)
