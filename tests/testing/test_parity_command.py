"""`python -m reasonblocks_testing parity`: any adapter's harness beside the core, from outside of the repository."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks_testing import LoopHarness, Ran, Script
from reasonblocks_testing.__main__ import main

HERE = __name__


class Faithful(LoopHarness):
    """Decides as the core does, since it is the core's own."""


class Bent(LoopHarness):
    """An adapter that changes what it is to run."""

    def run(
        self, rb: ReasonBlocks, script: Script, mode: str, *, times: int = 1, resume_at: Sequence[int] = ()
    ) -> list[Ran]:
        return [self.bent(one) for one in super().run(rb, self.read(script), mode, times=times, resume_at=resume_at)]

    def read(self, script: Script) -> Script:
        return script

    def bent(self, ran: Ran) -> Ran:
        return ran


class Trimming(Bent):
    """Cuts the white space around what tools gave back, as some frameworks do."""

    def read(self, script: Script) -> Script:
        turns = [
            replace(turn, results=tuple(replace(result, output=result.output.strip()) for result in turn.results))
            for turn in script.turns
        ]
        return replace(script, turns=tuple(turns))


class Declaring(Trimming):
    parity_limits: Mapping[str, str] = {"completed.observation": "it cuts white space"}


class Deaf(Bent):
    """Loses the guidance on its way to the model."""

    def bent(self, ran: Ran) -> Ran:
        return replace(ran, seen=tuple(replace(seen, system="", texts=()) for seen in ran.seen))


class Mistaken(Bent):
    """Says of every entry that it was of another model."""

    def bent(self, ran: Ran) -> Ran:
        return replace(ran, log=[replace(entry, model_id="another") for entry in ran.log])


class Forgetful(Bent):
    """Loses the last entry, and the final one."""

    def bent(self, ran: Ran) -> Ran:
        return replace(ran, log=list(ran.log)[:-1], final=None)


class Excusing(LoopHarness):
    parity_limits: Mapping[str, str] = {"gate_decision": "it decides by itself"}


class Silent(LoopHarness):
    parity_limits: Mapping[str, str] = {"completed.thought": ""}


READY = Faithful()


@pytest.fixture
def runs(tmp_path: Path) -> str:
    """A file with a run of three steps, and one that no real agent would go through."""
    path = tmp_path / "runs.jsonl"
    lines: list[Any] = [
        {"run_id": "fails", "task": "Fix it.", "steps": [_step(at) for at in range(3)]},
        {"run_id": "talks", "task": "Fix it.", "steps": [{"thought": "Hm."}, _step(1)]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def _step(at: int) -> dict[str, Any]:
    call = {"id": f"c{at}", "name": "run_tests", "arguments": {}}
    return {
        "thought": "I run the tests again.",
        "tool_calls": [call],
        "tool_results": [{"call_id": f"c{at}", "output": " 3 failed\n"}],
        "tokens": 20,
    }


def compared(harness: str, *options: str) -> int:
    return main(["parity", f"{HERE}:{harness}", *options])


def test_the_long_run_of_the_package_is_compared_in_every_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert compared("Faithful") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "long system, sync: 62 entries, 0 differences"
    assert lines[-1] == "496 entries compared with the core's, 0 undeclared differences"
    assert len(lines) == 9


@pytest.mark.parametrize("harness", ["Faithful", "READY"])
def test_a_harness_or_its_class_is_compared_on_recorded_runs(
    harness: str, runs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared(harness, "--runs", runs, "--mode", "async") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "recorded fails, async: 5 entries, 0 differences",
        "5 entries compared with the core's, 0 undeclared differences",
    ]
    assert "run 'talks' is left out: step 0 calls no tool" in shown.err


def test_guidance_that_does_not_reach_the_model_is_a_difference(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared("Deaf", "--runs", runs, "--mode", "sync") == 1
    out = capsys.readouterr().out
    assert "  recorded fails, sync, entry 0: guidance is [], the core's is ['[REASONBLOCKS]" in out


def test_a_step_that_is_read_wrongly_is_a_difference(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared("Trimming", "--runs", runs, "--mode", "sync") == 1
    out = capsys.readouterr().out
    assert r"entry 1: completed.observation is '3 failed', the core's is ' 3 failed\n'" in out
    assert out.endswith("5 entries compared with the core's, 3 undeclared differences\n")


def test_what_the_framework_cannot_tell_is_declared_and_counted(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared("Declaring", "--runs", runs, "--mode", "sync") == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "completed.observation: 3 declared differences (it cuts white space)",
        "5 entries compared with the core's, 0 undeclared differences",
    ]


def test_entries_that_are_missing_are_a_difference(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compared("Forgetful", "--runs", runs, "--mode", "sync") == 1
    out = capsys.readouterr().out
    assert "recorded fails, sync: 3 entries, the core has 5" in out
    assert "recorded fails, sync: it has no final entry" in out


def test_many_differences_of_a_run_are_cut_off_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert compared("Mistaken", "--mode", "sync") == 1
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[21]) == ("long system, sync: 62 entries, 61 differences", "  and 41 more")


REFUSED = {
    ("nothing",): "'nothing' is not MODULE:NAME",
    ("no_such_module:HARNESS",): "cannot be imported",
    (f"{HERE}:Missing",): "cannot be imported",
    (f"{HERE}:HERE",): "is no harness: it has no 'modes'",
    (f"{HERE}:Faithful", "--mode", "stream"): "--mode 'stream' is none of the harness's: sync, async",
    (f"{HERE}:Faithful", "--runs", "missing.jsonl"): "missing.jsonl has no run that can be compared",
    (f"{HERE}:Excusing",): "a decision is never a limit",
    (f"{HERE}:Silent",): "needs a reason",
}


@pytest.mark.parametrize("given", REFUSED)
def test_what_cannot_be_compared_is_refused_with_what_is_wrong(
    given: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["parity", *given])
    assert exited.value.code == 2
    assert REFUSED[given] in capsys.readouterr().err


def test_a_framework_that_does_not_tell_errors_is_compared_with_a_core_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Blind(LoopHarness):
        def __init__(self) -> None:
            super().__init__()
            self.caps = replace(self.caps, tool_errors=False)

    monkeypatch.setitem(globals(), "BLIND", Blind())
    assert compared("BLIND", "--mode", "sync") == 0


def test_the_command_runs_where_the_harness_can_be_imported(runs: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from reasonblocks_testing import LoopHarness as Harness\n", encoding="utf-8")
    command = [sys.executable, "-m", "reasonblocks_testing", "parity", "mine:Harness", "--runs", runs]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("10 entries compared with the core's, 0 undeclared differences\n")
