"""Tests that the adapter's decisions and guidance equal the core's, entry by entry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HARNESS = "tests.harness:YourFrameworkHarness"  # YOURS: your harness


def test_every_entry_is_the_cores() -> None:
    command = [sys.executable, "-m", "reasonblocks_testing", "parity", HARNESS]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" entries compared with the core's, 0 undeclared differences\n")
