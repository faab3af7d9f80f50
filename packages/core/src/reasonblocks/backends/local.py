"""Evaluates the monitors in this process: the same code that a server would run."""

from __future__ import annotations

from collections.abc import Mapping

from ..monitors import suite
from ..requests import Evaluate
from ..types import Evaluation, Memories


class LocalEvaluator:
    """Runs the monitors in place. `tool_roles` and `failure_types` are the caller's own declarations."""

    inline = True
    """Pure and bounded by its input: it needs no worker, and its answers are not validated again."""
    __slots__ = ("_settings",)

    def __init__(
        self, tool_roles: Mapping[str, str] | None = None, failure_types: Mapping[str, str] | None = None
    ) -> None:
        self._settings = suite.SuiteSettings(tool_roles=dict(tool_roles or {}), failure_types=dict(failure_types or {}))

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        return suite.evaluate(request, self._settings)
