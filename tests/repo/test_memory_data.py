"""The questions by which codebase memory is measured have answers, and each codebase has enough of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "benchmarks/_memory/data"
SPLITS = {"docutils": "report", "youtube_dl": "report", "reasonblocks": "report", "tune": "tune"}
LEAST = {"report": {"findings": 130, "answered": 45, "unanswered": 8}, "tune": {"findings": 80, "answered": 40}}
TYPES = {"location", "behaviour", "command", "gotcha", "convention", "failure"}
KINDS = {"identifier", "domain", "paraphrase"}
CONTENT_CHARS, PATH_CHARS = 8_000, 512


def rows(name: str) -> list[dict[str, Any]]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def findings(name: str) -> list[dict[str, Any]]:
    return [row for row in rows(name) if "finding" in row]


def questions(name: str) -> list[dict[str, Any]]:
    return [row for row in rows(name) if "question" in row]


def test_no_file_is_left_out() -> None:
    assert {path.stem for path in DATA.glob("*.jsonl")} == SPLITS.keys()


@pytest.mark.parametrize("name", SPLITS)
def test_a_file_has_a_head_and_then_findings_and_questions(name: str) -> None:
    head, *rest = rows(name)
    assert head.keys() == {"codebase", "version", "licence", "split"}
    assert head["split"] == SPLITS[name]
    assert {frozenset(row) for row in rest} == {
        frozenset({"finding", "content", "file_path", "finding_type"}),
        frozenset({"question", "answers", "kind"}),
    }


@pytest.mark.parametrize("name", SPLITS)
def test_there_are_enough(name: str) -> None:
    counts = Counter("answered" if question["answers"] else "unanswered" for question in questions(name))
    counts["findings"] = len(findings(name))
    least = LEAST[SPLITS[name]]
    assert {what: counts[what] for what in least if counts[what] < least[what]} == {}


@pytest.mark.parametrize("name", SPLITS)
def test_findings_are_different_and_can_be_stored(name: str) -> None:
    kept = findings(name)
    assert len({finding["finding"] for finding in kept}) == len(kept)
    assert len({finding["content"] for finding in kept}) == len(kept)
    assert {finding["finding_type"] for finding in kept} <= TYPES
    for finding in kept:
        assert 0 < len(finding["content"].strip()) <= CONTENT_CHARS, finding["finding"]
        assert len(finding["file_path"]) <= PATH_CHARS, finding["finding"]
        assert not finding["file_path"].startswith("/"), finding["finding"]


@pytest.mark.parametrize("name", SPLITS)
def test_questions_are_different_and_name_findings(name: str) -> None:
    ids = {finding["finding"] for finding in findings(name)}
    asked = questions(name)
    assert len({question["question"] for question in asked}) == len(asked)
    for question in asked:
        answers = question["answers"]
        assert set(answers) <= ids, question
        assert len(set(answers)) == len(answers) <= 3, question
        assert question["kind"] in KINDS if answers else question["kind"] == "none", question


@pytest.mark.parametrize("name", SPLITS)
def test_every_kind_of_question_has_a_fair_share(name: str) -> None:
    kinds = Counter(question["kind"] for question in questions(name) if question["answers"])
    assert min(kinds[kind] for kind in KINDS) * 4 >= kinds.total(), kinds
