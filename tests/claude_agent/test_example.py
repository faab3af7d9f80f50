"""The example of the Claude Agent SDK, run as it stands, beside a key and an endpoint that are not for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/claude_agent_run.py"
pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="examples are no part of the wheels")

FINDING = "5 times (your last step, and 1, 2, 3 and 4 steps before it)"
THE_READERS = {
    "ANTHROPIC_API_KEY": "the reader's own",
    "ANTHROPIC_AUTH_TOKEN": "the reader's own",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_CUSTOM_HEADERS": "x-reader: own",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
}


@pytest.fixture(scope="module")
def shown() -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **THE_READERS}
    command = [sys.executable, str(EXAMPLE)]
    return subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", check=False)


def test_the_example_prints_what_the_agent_was_told(shown: subprocess.CompletedProcess[str]) -> None:
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"call 5: NORMAL\n  | run_tests() has failed in the same way {FINDING}" in shown.stdout


def test_the_example_runs_to_its_end_where_the_reader_s_provider_is_out_of_reach(
    shown: subprocess.CompletedProcess[str],
) -> None:
    assert shown.stdout.endswith("success: 7 calls\n")


def test_nothing_of_the_reader_s_environment_reaches_the_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    from claude_agent_run import offline

    from reasonblocks_testing import Turn
    from reasonblocks_testing.server import ScriptedServer

    for name, value in THE_READERS.items():
        monkeypatch.setenv(name, value)
    with ScriptedServer(lambda asked: Turn(text="Done.")) as server, offline(server) as options:
        said, address = {**os.environ, **options.env}, server.anthropic_url
    of_the_readers = {name: said[name] for name in THE_READERS if name in said}
    assert of_the_readers == {"ANTHROPIC_API_KEY": "not needed", "ANTHROPIC_BASE_URL": address}
