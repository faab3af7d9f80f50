"""The conformance suite: what every adapter has to do on a real agent of its framework, scenario by scenario.

An adapter subclasses `ConformanceSuite` in its tests and gives `harness`. A scenario that is overridden or deleted
fails when the class is made; one that cannot be passed is declared with `expected_failures = {name: reason}`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from ._costs import FEWEST_LET_GO, CostScenarios
from ._decisions import DecisionScenarios
from ._faults import FaultScenarios
from ._golden import load_golden
from ._harness import Harness
from ._routes import RoutingScenarios
from ._several import FEWEST_AT_ONCE, RunScenarios
from ._turns import TurnScenarios

LONG_RUN = 150
"""Calls of the long run; an adapter whose framework is slow may set `long_run` lower."""
SHORTEST_LONG_RUN = 30


class ConformanceSuite(DecisionScenarios, TurnScenarios, FaultScenarios, RunScenarios, RoutingScenarios, CostScenarios):
    """Subclass it as `class TestX(ConformanceSuite)` with `harness`, and `golden_dir` where the golden runs are."""

    harness: ClassVar[Harness]
    golden_dir: ClassVar[Path | None] = None
    expected_failures: ClassVar[dict[str, str]] = {}
    long_run: ClassVar[int] = LONG_RUN

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.harness.modes or cls.long_run < SHORTEST_LONG_RUN:
            raise TypeError(f"{cls.__name__} needs a harness with modes, and a long_run of {SHORTEST_LONG_RUN} or more")
        if cls.at_once < FEWEST_AT_ONCE:
            raise TypeError(f"{cls.__name__} needs an at_once of {FEWEST_AT_ONCE} or more")
        if cls.short_runs < cls.kept_runs + FEWEST_LET_GO:
            raise TypeError(
                f"{cls.__name__} needs {FEWEST_LET_GO} short_runs more than kept_runs, or a leak is not seen"
            )
        if cls.golden_dir is not None and not any(cls.golden_dir.glob("*.jsonl")):
            rule = "give the folder tests/golden of a checkout, or None"
            raise TypeError(f"{cls.__name__}.golden_dir = {cls.golden_dir} holds no golden runs: {rule}")
        for name in (*SCENARIOS, "pytest_generate_tests"):
            if getattr(cls, name, None) is not getattr(ConformanceSuite, name):
                raise TypeError(f"{cls.__name__}.{name} is overridden: a scenario is passed, or an expected failure")
        for name, reason in cls.expected_failures.items():
            if name not in SCENARIOS or not reason:
                raise TypeError(f"expected_failures[{name!r}] needs the name of a scenario and a reason")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "golden" in metafunc.fixturenames:
            found = sorted(self.golden_dir.glob("*.jsonl")) if self.golden_dir else []
            metafunc.parametrize("golden", [pytest.param(load_golden(path), id=path.stem) for path in found])
        if "mode" in metafunc.fixturenames:
            metafunc.parametrize("mode", self.harness.modes)

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest) -> None:
        function: Callable[..., object] = request.function
        reason = self.expected_failures.get(function.__name__)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


SCENARIOS = tuple(name for name in dir(ConformanceSuite) if name.startswith("test_"))
"""Every scenario, by name."""
