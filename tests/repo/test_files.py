"""What may not stand in the repository's files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?<![\w./~-])/(?:root|work|opt|home/[\w.-]+|Users/[\w.-]+)/[\w.-]")
SHOWN_ON_PURPOSE = {
    "tests/workbench/learning/secrets_in_runs.py": "home folders, whose users' names are masked or stay"
}
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


ASKED_FOR_HELP = """
import contextlib, io, json, runpy, sys
sys.path[0] = sys.argv[1]
scripts, said = sys.argv[2:], {}
for script in scripts:
    sys.argv = [f"{sys.path[0]}/{script}", "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code
    said[script] = [code, out.getvalue()]
print(json.dumps(said))
"""
"""Runs all benchmarks in one process, which imports once what they share."""


@pytest.fixture(scope="module")
def helped() -> dict[str, tuple[int, str]]:
    """Return the exit code of each benchmark that is asked for help, and what it says."""
    command = [sys.executable, "-c", ASKED_FOR_HELP, str(ROOT / "benchmarks"), *BENCHMARKS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, tuple[int, str]] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("script", BENCHMARKS)
def test_a_benchmark_takes_json(script: str, helped: dict[str, tuple[int, str]]) -> None:
    code, said = helped[script]
    assert code in (0, None)
    assert "--json" in said
