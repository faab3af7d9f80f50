"""The CLI runs in an environment of its own: nothing is inherited, and no request leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claude_agent.harness import AT_ONCE
from tests.whole import WHOLE

KEPT = ("PATH", "LANG", "PYTHONWARNINGS", "REASONBLOCKS_STRICT", "REASONBLOCKS_PARITY", "PYTEST_CURRENT_TEST")
NOWHERE = "http://127.0.0.1:9"


def pytest_report_header() -> str:
    which = "all" if WHOLE else "without gateway parity; REASONBLOCKS_WHOLE=1 for all"
    return f"claude-agent: {which}, {AT_ONCE} sessions of the CLI at once"


@pytest.fixture(scope="session", autouse=True)
def scrubbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({name: before[name] for name in KEPT if name in before})
    os.environ.update(HOME=str(home), ANTHROPIC_BASE_URL=NOWHERE, ANTHROPIC_API_KEY="none")
    try:
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)
