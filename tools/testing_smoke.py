"""Checks the installed test kit: `./dev wheel` runs this where only it is installed, with what it requires.

The reference loop passes the conformance suite, and its parity with the core is compared.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TEST = """
from reasonblocks_testing import ConformanceSuite, LoopHarness


class TestLoop(ConformanceSuite):
    harness = LoopHarness()
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "test_loop.py")
        file.write_text(TEST, encoding="utf-8")
        assert " passed" in printed("pytest", "-q", "-k", "not golden", str(file))
    assert " 0 undeclared differences" in printed("reasonblocks_testing", "parity", "reasonblocks_testing:LoopHarness")
    print("the test kit works")


def printed(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
