"""The example of threads: a stuck run is handed over to a person, whose words reach one call."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/threads_handover.py"
MISSING = [
    name for name in ("reasonblocks_langchain", "reasonblocks_threads") if importlib.util.find_spec(name) is None
]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")


def shown(*arguments: str, answers: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *arguments]
    return subprocess.run(command, input=answers, capture_output=True, text=True, encoding="utf-8", check=False)


def test_the_words_of_a_person_reach_one_call_and_the_agent_goes_on() -> None:
    run = shown()
    assert (run.returncode, run.stderr) == (0, "")
    assert "bugfixer does not act on advice: Fix the failing tests." in run.stdout
    assert (
        len(re.findall(r"^The words of mara were part of the calls \[\d+\], of \d+ in all\.$", run.stdout, re.M)) == 1
    )
    assert "\n  OK\n" in run.stdout
    assert re.search(r"^thread .*: done", run.stdout, re.M)
