"""Evaluates the monitors in this process: the same code that a server would run."""

from __future__ import annotations

from collections.abc import Mapping

from ..engine.own_level import with_own_level
from ..monitors import suite
from ..monitors.builtin import Calibration
from ..requests import Evaluate
from ..types import Evaluation, Memories, OwnLevel
from ..util.json import evolve


class LocalEvaluator:
    """Runs the monitors in place. `tool_roles` and `failure_types` are the caller's own declarations."""

    inline = True
    """Pure and bounded by its input: it needs no worker, and its answers are not validated again."""
    __slots__ = ("_newest", "_settings")

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
        self._newest: tuple[OwnLevel | None, suite.SuiteSettings] = (None, self._settings)

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        return suite.evaluate(request, self._judged_by(request.own_level))

    def _judged_by(self, own: OwnLevel | None) -> suite.SuiteSettings:
        """Return the settings with a run's own level. Those of the run evaluated last are kept, for its next step."""
        if own is None:
            return self._settings
        known, settings = self._newest
        if own is not known:
            settings = evolve(self._settings, calibration=with_own_level(self._settings.calibration, own))
            self._newest = own, settings
        return settings
