"""The examples of docs/threads.md and of the README run, and the page's numbers are those of the code."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from reasonblocks_threads import PLAN_THEN_REVIEW, Budget
from reasonblocks_threads.builtin import BUILT_IN, LETTER_S
from reasonblocks_threads.cards import ALSO, ANSWERS
from reasonblocks_threads.catalogue import Action
from reasonblocks_threads.phases import Phase
from reasonblocks_threads.table import REVIEW_S, WAIT_S
from reasonblocks_threads.watch import NUMBERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/threads.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## A person decides\n")[1].split("\n## ")[0]
PROPOSAL, STEERING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(OF_README,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "docs/threads.md", "exec"), names)
    return names


def test_the_example_of_a_proposal_asks_runs_and_is_reviewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(PROPOSAL, tmp_path, monkeypatch)
    shown, last = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    assert "Deploy web 1.4?" in shown
    assert "external_effect" in shown
    assert last == "awaiting_review web is at 1.4"
    assert f"prints is `{last}`" in PAGE


@pytest.mark.parametrize("code", [STEERING, OF_README], ids=["page", "readme"])
def test_the_example_of_steering_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(code, tmp_path, monkeypatch)
    with names["rb"], names["threads"], names["rb"].session():
        assert names["threads"].cards() == ()


def test_the_page_names_every_answer_of_every_card() -> None:
    for kind, answers in ANSWERS.items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {kind} |"))
        assert all(f"`{name}`" in row for name in answers), (kind, row)
    assert all(f"`{name}`" in PAGE for name in ALSO)


def test_the_page_names_the_built_in_actions_and_the_ends() -> None:
    assert all(f"`{action.name}`" in PAGE for action in BUILT_IN)
    assert [action.name for action in BUILT_IN if action.spec.auto] == ["acknowledge"]
    assert all(f"`{phase.value}`" in PAGE for phase in Phase if phase.is_terminal)


def test_its_numbers_are_those_of_the_code() -> None:
    assert (len(Phase), WAIT_S, REVIEW_S) == (21, 7 * 86_400, 72 * 3_600)
    assert (NUMBERS.slow_calls, NUMBERS.injections, NUMBERS.firings, NUMBERS.quiet_steps) == (12, 2, 3, 5)
    assert PLAN_THEN_REVIEW.budget == Budget(calls=8, tokens=200_000, usd=0.5)
    assert (PLAN_THEN_REVIEW.floor, LETTER_S, signature(Action).parameters["deadline_s"].default) == (0.6, 1800, 120)
    for words in (
        "21 phases", "7 days", "72 hours", "12 calls in SLOW", "at least 2 texts",
        "occurs 3 times", "5 evaluated steps",
        "8 calls of the inferencer, 200,000 tokens and 0.50 USD", "at least `floor` (0.6)",
        "10 calls or 30 minutes",
    ):  # fmt: skip
        assert words in PAGE, words
