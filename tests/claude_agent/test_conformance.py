"""The adapter passes the suite that every adapter has to pass, in sessions of the real CLI."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from reasonblocks_testing import ConformanceSuite
from tests.claude_agent.harness import AT_ONCE, ClaudeHarness

SHORTENED = "the CLI keeps the history: nobody can cut it"
NOTED = "the CLI may put a note of its own after the last user message"
GOLDEN = Path(__file__).parents[1] / "golden"


class TestHooks(ConformanceSuite):
    harness = ClaudeHarness("hooks")
    golden_dir = GOLDEN
    long_run = 30
    at_once = AT_ONCE
    kept_runs = 0  # each run here has a client of its own
    short_runs = 4
    expected_failures: ClassVar[dict[str, str]] = {
        "test_a_model_error_passes_through_after_one_call": "the CLI says it in a message, after retries of its own",
        "test_a_retried_call_keeps_its_decision": "the CLI retries unseen: hooks know of one attempt",
        "test_a_shortened_history_loses_no_step": SHORTENED,
        "test_odd_and_huge_texts_pass": "the CLI puts a huge result into a file, and says so of an empty one",
    }


class TestGateway(ConformanceSuite):
    harness = ClaudeHarness("gateway")
    golden_dir = GOLDEN
    long_run = 30
    at_once = AT_ONCE
    kept_runs = 0  # each run here has a client of its own
    short_runs = 4
    expected_failures: ClassVar[dict[str, str]] = {
        "test_a_model_error_passes_through_after_one_call": "the CLI says it in a message, after retries of its own",
        "test_a_shortened_history_loses_no_step": SHORTENED,
        "test_guidance_at_the_tail_reaches_the_call": NOTED,
        "test_the_tail_adds_no_message": NOTED,
        "test_odd_and_huge_texts_pass": "the CLI puts a huge result into a file, and says so of an empty one",
    }
