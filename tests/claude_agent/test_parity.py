"""Every parity run in sessions of the real CLI, written down for `tests/parity`, which compares it with the core."""

from __future__ import annotations

import pytest

from tests.claude_agent.harness import ClaudeHarness
from tests.parity.exchange import Written, write
from tests.parity.runs import NAMES


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write("claude-agent", ClaudeHarness("hooks"), tmp_path_factory.mktemp("parity"))


@pytest.mark.parametrize("name", NAMES)
def test_a_parity_run_goes_through_real_agents(name: str, written: Written) -> None:
    assert written.of(name) == []
