"""The workflows of GitHub run sessions that exist, and every cell of the matrix."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cells import CELLS, ENDS

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SESSIONS = frozenset(
    re.findall(r"^def (\w+)\(session: nox", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
) | frozenset(re.findall(r'nox\.session\(name="([\w-]+)"', (ROOT / "noxfile.py").read_text(encoding="utf-8")))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_sessions_that_exist(workflow: Path) -> None:
    commands = re.findall(r'run: ./dev "?([^"\n]+)"?$', workflow.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands
    assert {name for name in commands if "matrix.cell" not in name} <= SESSIONS


def test_the_matrix_has_a_job_for_each_cell() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/cells.py"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [{"session": cell.name, "python": cell.python} for cell in CELLS]


def test_the_checks_run_on_both_ends_of_the_pythons() -> None:
    text = (ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8")
    assert f'python: ["{ENDS[0]}", "{ENDS[1]}"]' in text


def test_the_folder_of_the_decisions_is_that_of_the_matrix() -> None:
    folder = re.search(r'MATRIX_PARITY = ROOT / "([^"]+)"', (ROOT / "noxfile.py").read_text(encoding="utf-8"))
    assert folder
    text = (ROOT / ".github/workflows/matrix.yml").read_text(encoding="utf-8")
    assert text.count(f"path: {folder[1]}\n") == 2
