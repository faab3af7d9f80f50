"""The adapter passes the suite that every adapter has to pass, on real agents, over both of OpenAI's APIs."""

from __future__ import annotations

from pathlib import Path

from reasonblocks_testing import ConformanceSuite
from tests.openai_agents.harness import OpenAIHarness


class TestOpenAIAgents(ConformanceSuite):
    harness = OpenAIHarness()
    golden_dir = Path(__file__).parents[1] / "golden"
    kept_runs = 0  # the caller alone holds what `openai_run` gives back
    short_runs = 40
