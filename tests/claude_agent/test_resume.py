"""A session that is resumed goes on with the run that it left unfinished, in another process too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.testing import Turn
from reasonblocks.testing.server import Asked, ProviderError
from tests.claude_agent.other_process import STOPS_BEFORE
from tests.claude_agent.world import SECONDS, cli, in_turn, looks, one_run, place, steering

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")
CALLS = 5


def part(file: Path, url: str, which: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.claude_agent.other_process", str(file), url, which]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_run_goes_on_in_another_process_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    left: list[bool] = []
    script = in_turn(*looks(CALLS))

    def answer(asked: Asked) -> Turn:
        if asked.answers == STOPS_BEFORE and not left:  # the CLI asks once more as it is left
            raise ProviderError("nobody is here", status=400)
        return script(asked)

    with place(answer) as here:
        file = tmp_path / "state.json"
        before = part(file, here.server.anthropic_url, "first")
        assert (before["outcome"], len(json.loads(file.read_text()))) == (None, 1)
        left.append(True)
        after = part(file, here.server.anthropic_url, "rest")
    with place(in_turn(*looks(CALLS))) as here:
        whole = one_run(here, steering()).steering.step_log
    known = {step: [step, gate, texts] for step, gate, texts in [*before["log"], *after["log"]]}
    assert list(known.values()) == [[one.step, one.gate_decision, list(one.intervention_texts)] for one in whole]
    assert (after["outcome"], json.loads(file.read_text())) == ("success", {})
