"""A session that is resumed goes on with the run that it left unfinished, in another process too."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from reasonblocks_claude_agent import SteeredClaudeClient
from reasonblocks_claude_agent._client import Mode
from reasonblocks_testing import Turn
from reasonblocks_testing.server import Asked, ProviderError
from tests.claude_agent.harness import answers
from tests.claude_agent.other_process import STOPS_BEFORE
from tests.claude_agent.world import SECONDS, TASK, Place, cli, in_time, in_turn, looks, one_run, place
from tests.steered import steering
from tests.whole import in_whole

__all__ = ["cli"]
pytestmark = pytest.mark.usefixtures("cli")
CALLS = 5


class Slow:
    """A model that is asked for the second answer, and is left before it gives it; afterwards it answers all."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()

    def __call__(self, asked: Asked) -> Turn:
        if answers(asked) == 1 and not self.let_go.is_set():
            self.asked.set()
            self.let_go.wait(SECONDS)
            raise ProviderError("overloaded", status=529)
        return in_turn(*looks(CALLS))(asked)


async def left_and_resumed(here: Place, slow: Slow, mode: Mode) -> list[SteeredClaudeClient]:
    """The clients of both parts of one session."""
    rb, clients, session_id = steering(), list[SteeredClaudeClient](), str(uuid4())
    for options, prompt in ((here.options(session_id=session_id), TASK), (here.options(resume=session_id), "Go on.")):
        async with SteeredClaudeClient(rb, options, run_id="run", mode=mode) as client:
            clients.append(client)
            await client.query(prompt)
            if prompt == TASK:
                await asyncio.to_thread(slow.asked.wait, SECONDS)
            else:
                assert [message async for message in client.receive_response()]
        slow.let_go.set()
    return clients


@pytest.mark.parametrize("mode", [pytest.param("hooks", marks=in_whole), "gateway"])
def test_a_session_that_is_left_while_its_model_answers_is_told_nothing_twice(mode: Mode) -> None:
    slow = Slow()
    with place(in_turn(*looks(CALLS))) as here:
        whole = one_run(here, steering()).steering.step_log
    (text,) = whole[1].intervention_texts
    with place(slow) as here:
        (_, resumed) = in_time(left_and_resumed(here, slow, mode))
        first = next(asked for asked in here.asked() if any("Go on." in text for text in asked.texts))
    assert json.dumps(first.body).count(json.dumps(text)[1:-1]) == 1
    log = resumed.steering.runs["run"].step_log
    assert [entry.intervention_texts for entry in log] == [entry.intervention_texts for entry in whole[1:]]


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
