"""The adapter passes the suite that every adapter has to pass, on real agents."""

from __future__ import annotations

from pathlib import Path

from reasonblocks_testing import ConformanceSuite

from .harness import PydanticAIHarness


class TestPydanticAI(ConformanceSuite):
    harness = PydanticAIHarness()
    golden_dir = Path(__file__).parents[3] / "tests/golden"  # of a checkout; they are no part of a distribution
