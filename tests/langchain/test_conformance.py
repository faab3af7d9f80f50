"""The adapter passes the suite that every adapter has to pass, on real agents."""

from __future__ import annotations

from pathlib import Path

from reasonblocks_testing import ConformanceSuite
from tests.langchain.harness import LangChainHarness


class TestLangChain(ConformanceSuite):
    harness = LangChainHarness()
    golden_dir = Path(__file__).parents[1] / "golden"
