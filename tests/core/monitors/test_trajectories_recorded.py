"""The recorded trajectories are files that `reasonblocks replay` reads, each as a session that is steered live."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_workbench.cli import main
from tests.core.monitors.trajectories import FAIR, FILES, STUCK, Fair, Stuck

each_file = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
RUNS: Mapping[str, Fair | Stuck] = {**FAIR, **STUCK}


@each_file
def test_replay_reads_every_step_of_a_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["replay", "--json", str(path)])
    replayed: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    named = [json.loads(line)["run_id"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert (code, [run["run_id"] for run in replayed]) == (0, named)
    assert [len(run["steps"]) for run in replayed] == [len(RUNS[name].steps) for name in named]


def test_every_trajectory_has_a_sentence_of_its_own() -> None:
    lines = [line for path in FILES for line in path.read_text(encoding="utf-8").splitlines()]
    assert (len(lines), len(FAIR), len(STUCK)) == (92, 65, 27)


@pytest.mark.parametrize("name", STUCK)
def test_trouble_is_plain_within_its_steps(name: str) -> None:
    trouble = STUCK[name]
    assert 0 <= trouble.plain_at < len(trouble.stuck)
