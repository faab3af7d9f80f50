"""`reasonblocks calibrate` where scikit-learn is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_the_error_says_what_to_install(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "sklearn.linear_model"):
        monkeypatch.setitem(sys.modules, name, None)
    done = command("calibrate", "runs.jsonl", "--out", str(tmp_path / "agent.toml"))
    assert (done.code, done.out) == (1, "")
    assert done.err == "reasonblocks: calibrating needs scikit-learn: pip install 'scikit-learn>=1.4'\n"
    assert not (tmp_path / "agent.toml").exists()


def test_a_file_to_write_must_be_named(command: Command) -> None:
    done = command("calibrate", "runs.jsonl")
    assert done.code == 2
    assert "--out" in done.err
