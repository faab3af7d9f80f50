"""The examples of levers print what each lever does, on real agents and offline."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "langchain": ("langchain", "langchain_anthropic", "reasonblocks_langchain"),
    "openai_agents": ("agents", "reasonblocks_openai_agents"),
}


@pytest.mark.parametrize("framework", NEEDS)
def test_each_lever_is_seen(framework: str) -> None:
    missing = [name for name in NEEDS[framework] if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")
    command = [sys.executable, str(EXAMPLES / f"levers_{framework}.py")]
    shown = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert shown.returncode == 0, shown.stderr
    calls = shown.stdout.split("call ")[1:]
    assert [number for number, call in enumerate(calls) if "(ESCALATE)" in call or "(high)" in call] == [5, 6]
    assert 'Another model, asked for advice, says: "Read tests/test_prices.py' in calls[5]
    assert "Budget: 6 of 12 calls are left." in calls[6]
    assert 'The task: "Fix the failing tests."' in calls[7]
