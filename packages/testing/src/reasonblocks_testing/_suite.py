"""The conformance suite: scenarios that every adapter has to pass on real agents of its framework."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

import pytest

from ._control_scenarios import ControlScenarios
from ._golden import load_golden
from ._run_scenarios import MIN_AT_ONCE, MIN_RELEASED, CostScenarios, RunScenarios, TurnScenarios
from ._scenarios import DecisionScenarios, FaultScenarios, RoutingScenarios
from .harness import Harness

LONG_RUN = 150
"""Model calls of the long run; an adapter for a slow framework may set `long_run` lower."""
MIN_LONG_RUN = 30


class ConformanceSuite(
    DecisionScenarios,
    TurnScenarios,
    FaultScenarios,
    RunScenarios,
    RoutingScenarios,
    ControlScenarios,
    CostScenarios,
):
    """Tests an adapter on real agents. Subclass it in a test module; pytest collects every `test_...` scenario.

    >>> class TestMyFramework(ConformanceSuite):
    ...     harness = MyFrameworkHarness()
    ...     golden_dir = Path("tests/golden")  # of a checkout of ReasonBlocks
    ...     expected_failures = {"test_a_pause_is_no_end": "MyFramework cannot pause a run"}

    - `harness`: runs scripts on agents of the framework. Required.
    - `golden_dir`: the folder of the golden runs (`*.jsonl`); None skips their scenario.
    - `expected_failures`: scenarios that cannot pass, each with the reason: what the framework does instead. A key
      names a whole scenario ("test_x"), one mode ("test_x[stream]"), one golden run ("test_x[slow]"), or one golden run
      in one mode ("test_x[slow-stream]"). A scenario that is declared and passes, fails.
    - `long_run`: model calls of the long run; 150, at least 30.
    - `at_once`: runs at the same time; 32, at least 8.
    - `kept_runs`: finished runs whose sessions the adapter may keep; 256.
    - `short_runs`: runs that are started to see whether sessions are released; 300, at least `kept_runs` + 4.

    Creating a subclass raises `TypeError` for a wrong value, an unknown name in `expected_failures`, and an overridden
    or deleted scenario.
    """

    harness: ClassVar[Harness]
    golden_dir: ClassVar[Path | None] = None
    expected_failures: ClassVar[dict[str, str]] = {}
    long_run: ClassVar[int] = LONG_RUN

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.harness.modes or cls.long_run < MIN_LONG_RUN:
            raise TypeError(f"{cls.__name__} needs a harness with modes, and a long_run of {MIN_LONG_RUN} or more")
        if cls.at_once < MIN_AT_ONCE:
            raise TypeError(f"{cls.__name__} needs an at_once of {MIN_AT_ONCE} or more")
        if cls.short_runs < cls.kept_runs + MIN_RELEASED:
            raise TypeError(
                f"{cls.__name__} needs {MIN_RELEASED} short_runs more than kept_runs, or it cannot detect a leak"
            )
        if cls.golden_dir is not None and not any(cls.golden_dir.glob("*.jsonl")):
            rule = "give the folder tests/golden of a checkout, or None"
            raise TypeError(f"{cls.__name__}.golden_dir = {cls.golden_dir} holds no golden runs: {rule}")
        for name in (*SCENARIOS, "pytest_generate_tests"):
            if getattr(cls, name, None) is not getattr(ConformanceSuite, name):
                raise TypeError(
                    f"{cls.__name__}.{name} is overridden or deleted: declare it in expected_failures instead"
                )
        for name, reason in cls.expected_failures.items():
            if not reason:
                raise TypeError(f"{cls.__name__}.expected_failures[{name!r}] needs a reason: what the framework does")
            cls._check_expected(name)

    @classmethod
    def _check_expected(cls, name: str) -> None:
        """Raise `TypeError`, with the valid names, for a name that is no scenario, mode or golden run of this suite."""
        scenario, _, cell = name.partition("[")
        if scenario not in SCENARIOS:
            valid: Collection[str] = SCENARIOS
        elif not cell or name in (valid := cls._cells(scenario)):
            return
        there = ", ".join(valid) if valid else f"{scenario}, which has neither modes nor golden runs"
        raise TypeError(f"{cls.__name__}.expected_failures[{name!r:.200}] is unknown; there is {there}")

    @classmethod
    def _cells(cls, scenario: str) -> list[str]:
        """Return the names of a scenario's cases that can be declared separately."""
        takes = inspect.signature(getattr(cls, scenario)).parameters
        modes = list(cls.harness.modes) if "mode" in takes else []
        runs = [path.stem for path in cls._golden_files()] if "golden" in takes else []
        return [f"{scenario}[{cell}]" for cell in (*modes, *runs, *(f"{run}-{mode}" for run in runs for mode in modes))]

    @classmethod
    def _golden_files(cls) -> list[Path]:
        return sorted(cls.golden_dir.glob("*.jsonl")) if cls.golden_dir else []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "golden" in metafunc.fixturenames:
            runs = [pytest.param(load_golden(path), id=path.stem) for path in self._golden_files()]
            metafunc.parametrize("golden", runs)
        if "mode" in metafunc.fixturenames:
            metafunc.parametrize("mode", self.harness.modes)

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest) -> None:
        scenario, _, cell = request.node.name.rstrip("]").partition("[")
        callspec = getattr(request.node, "callspec", None)  # only parametrised scenarios have it
        mode = callspec.params["mode"] if callspec else ""
        names = (*(f"{scenario}[{part}]" for part in (cell, cell.removesuffix(f"-{mode}"), mode)), scenario)
        reason = next((self.expected_failures[name] for name in names if name in self.expected_failures), None)
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=f"{reason} (declared in expected_failures)", strict=True))


SCENARIOS = tuple(name for name in dir(ConformanceSuite) if name.startswith("test_"))
"""Every scenario, by name."""
