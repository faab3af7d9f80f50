"""The example of codebase memory: a note saves a later run its search, until the file changes."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/codebase_memory.py"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("reasonblocks_langchain") is None, reason="reasonblocks-langchain is not installed here"
)


def test_the_second_run_needs_one_call_and_the_third_finds_it_out_again() -> None:
    run = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, encoding="utf-8", check=False, timeout=120
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert re.findall(r"Tool calls: (\d+)$", run.stdout, re.MULTILINE) == ["5", "1", "5"]
    assert run.stdout.startswith("A scripted agent is asked")
    first, second, third = re.split(r"^(?:Second|Third) run", run.stdout, flags=re.MULTILINE)
    note = "\n    |     A price that is a text is read by cents()"
    assert [note in part for part in (first, second, third)] == [False, True, False]
    assert ["No note of an earlier run matches." in part for part in (first, second, third)] == [True, False, True]
