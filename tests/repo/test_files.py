"""What may not stand in the repository's files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?<![\w./~-])/(?:root|work|opt|home/[\w.-]+|Users/[\w.-]+)/[\w.-]")
SHOWN_ON_PURPOSE = {"tests/core/learning/secrets_in_runs.py": "home folders, whose users' names are masked or stay"}
"""Files that may show such a path, by their path from the root: the reason."""
BENCHMARKS = sorted(path.name for path in ROOT.glob("benchmarks/[!_]*.py"))


def files() -> list[Path]:
    """What git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def machine_paths(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return [f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, at.start()) + 1}" for at in MACHINE_PATH.finditer(text)]


def test_no_file_names_a_path_of_one_machine() -> None:
    looked_at = [path for path in files() if str(path.relative_to(ROOT)) not in SHOWN_ON_PURPOSE]
    assert [place for path in looked_at for place in machine_paths(path)] == []


@pytest.mark.parametrize("script", BENCHMARKS)
def test_a_benchmark_takes_json(script: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / script), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--json" in done.stdout
