"""Every parity run in sessions of the real CLI, written down for `tests/parity`, which compares it with the core."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.claude_agent.harness import ClaudeHarness
from tests.parity.exchange import VARIABLE, Written, write
from tests.parity.runs import NAMES
from tests.whole import WHOLE, in_whole


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    if (folder := os.environ.get(VARIABLE)) and not WHOLE:  # what was written before is not of this code
        (Path(folder) / "gateway" / "claude-agent.jsonl").unlink(missing_ok=True)
    return write("claude-agent", ClaudeHarness("hooks"), tmp_path_factory.mktemp("parity"))


@pytest.fixture(scope="module")
def written_by_gateway(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """In a folder of its own: what a mode can do stands at the head of a file."""
    with pytest.MonkeyPatch.context() as patch:
        if folder := os.environ.get(VARIABLE):
            patch.setenv(VARIABLE, str(Path(folder) / "gateway"))
        return write("claude-agent", ClaudeHarness("gateway"), tmp_path_factory.mktemp("parity"))


@pytest.mark.parametrize("name", NAMES)
def test_a_parity_run_goes_through_real_agents(name: str, written: Written) -> None:
    assert written.of(name) == []


@in_whole
@pytest.mark.parametrize("name", NAMES)
def test_a_parity_run_goes_through_a_gateway(name: str, written_by_gateway: Written) -> None:
    assert written_by_gateway.of(name) == []
