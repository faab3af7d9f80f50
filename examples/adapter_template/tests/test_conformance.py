"""The adapter passes the suite that every adapter has to pass, on real agents."""

from __future__ import annotations

from pathlib import Path

from reasonblocks_testing import ConformanceSuite

from .harness import YourFrameworkHarness


class TestYourFramework(ConformanceSuite):
    harness = YourFrameworkHarness()
    golden_dir = Path(__file__).parents[3] / "tests/golden"  # YOURS: tests/golden of a checkout of ReasonBlocks
    # YOURS: expected_failures = {"test_...": "why the framework cannot"}, or "test_...[stream]" for one mode only
