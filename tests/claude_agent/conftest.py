"""The CLI runs in an environment of its own: nothing is inherited, and no request leaves this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claude_agent.environment import scrubbed_environment
from tests.claude_agent.harness import AT_ONCE
from tests.whole import WHOLE


def pytest_report_header() -> str:
    which = "all" if WHOLE else "without gateway parity; REASONBLOCKS_WHOLE=1 for all"
    return f"claude-agent: {which}, {AT_ONCE} sessions of the CLI at once"


@pytest.fixture(scope="session", autouse=True)
def scrubbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with scrubbed_environment(tmp_path_factory.mktemp("home")) as home:
        yield home
