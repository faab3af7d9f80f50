"""What a transcript has is not said again, and what it lost is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.types import FSMState, StepDecision
from reasonblocks_claude_agent.hooks import TAIL, HookDelivery, ends_with

TEXT = 'Read "żółć" first.\nThen\tgo on: \u2028 \x7f \x01.'
DECISION = StepDecision(step=3, fsm_state=FSMState.NORMAL, guidance=TEXT)
AGAIN = replace(DECISION, replayed=True)


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def written(path: Path, *texts: str) -> Path:
    """As the CLI writes it: no escapes but those that JSON asks for."""
    lines = (json.dumps({"type": "attachment", "content": [text]}, ensure_ascii=False) for text in texts)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def said(transcript: Path | str | None, decision: StepDecision) -> dict[str, Any]:
    given = {"transcript_path": str(transcript)} if transcript else {}
    return HookDelivery().deliver("UserPromptSubmit", given, decision)


def test_a_resumed_session_is_not_told_what_its_transcript_has(transcript: Path) -> None:
    assert said(written(transcript, "before", TEXT, "after"), AGAIN) == {}


def test_a_resumed_session_is_told_what_its_transcript_lost(transcript: Path) -> None:
    assert said(written(transcript, "before"), AGAIN)["hookSpecificOutput"]["additionalContext"] == TEXT


def test_a_new_decision_is_told_whatever_the_transcript_has(transcript: Path) -> None:
    assert said(written(transcript, TEXT), DECISION) != {}


@pytest.mark.parametrize("path", [None, "", "no such file", "."])
def test_without_a_transcript_it_is_told(path: str | None) -> None:
    assert said(path, AGAIN) != {}


def test_of_a_long_transcript_the_end_is_read(transcript: Path) -> None:
    assert not ends_with(str(written(transcript, TEXT, "x" * TAIL)), TEXT)
    assert ends_with(str(written(transcript, "x" * TAIL, TEXT)), TEXT)
