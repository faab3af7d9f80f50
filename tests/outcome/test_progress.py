"""Progress without a terminal: a line a minute, and one at the end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from _outcome import progress as module
from _outcome.progress import progress

from tests.outcome.made import shadow


def test_without_a_terminal_the_last_line_has_all_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("shadow runs", 5) as step:
        for seed, won in enumerate((True, False, True)):
            step(shadow("house", seed, won=won))
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "shadow runs: 3 of 5, 2 won\n"


def test_errors_are_counted_and_the_last_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("shadow runs", 2) as step:
        for seed in range(2):
            step(replace(shadow("house", seed), error=f"Gone: {seed}"))
    assert capsys.readouterr().err == (
        "shadow runs: 2 of 2, 0 won\n2 ended with an error; the same command repeats them: Gone: 1\n"
    )


def test_a_minute_after_the_last_line_there_is_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
    with progress("branches", 2) as step:
        step(shadow("house", 0))
        assert capsys.readouterr().err == "branches: 1 of 2, 0 won\n"


def test_without_runs_there_is_nothing_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("branches", 0):
        pass
    assert capsys.readouterr().err == ""
