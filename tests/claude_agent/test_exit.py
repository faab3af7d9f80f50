"""A program that only imports the adapter ends without a word."""

from __future__ import annotations

import os
import subprocess
import sys


def test_an_import_prints_nothing_at_exit() -> None:
    command = [sys.executable, "-c", "import reasonblocks_claude_agent._sessions"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    assert (done.stdout, done.stderr) == ("", "")
