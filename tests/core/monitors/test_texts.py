"""What the monitors say to the agent."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from reasonblocks._monitors import MONITORS
from reasonblocks._monitors.builtin import BY_NAME
from reasonblocks._monitors.finding import Finding

SECRET = "result that no text may quote"
KINDS = [
    ("claim_contradiction", "claim"),
    ("claim_contradiction", "value"),
    ("claim_contradiction", "assumed"),
    ("semantic_loop", "repeat"),
    ("semantic_loop", "retry"),
    ("semantic_loop", "cycle"),
    ("semantic_loop", "error"),
    ("verification_skip", "done"),
    ("verification_skip", "many"),
    ("cyclic_compression", ""),
    ("late_sprawl", ""),
    ("silent_topic_drift", ""),
]


def say(name: str, kind: str, rung: int) -> str:
    found = Finding(score=0.9, steps=(4, 6, 8), facts={"kind": kind, "tool": "run_sql", "count": 3})
    return BY_NAME[name].say(found, rung)


def test_every_monitor_is_among_the_texts_tested_here() -> None:
    assert {name for name, _ in KINDS} == {row.name for row in MONITORS}


@pytest.mark.parametrize("rung", [1, 2, 3])
@pytest.mark.parametrize(("name", "kind"), KINDS)
class TestEachText:
    def test_the_first_sentence_names_a_step(self, name: str, kind: str, rung: int) -> None:
        assert re.search(r"[Ss]teps? \d", say(name, kind, rung).split(". ")[0])

    def test_the_first_sentence_names_the_tool(self, name: str, kind: str, rung: int) -> None:
        assert "run_sql" in say(name, kind, rung).split(". ")[0]

    def test_it_is_two_sentences(self, name: str, kind: str, rung: int) -> None:
        text = say(name, kind, rung)
        assert (text.count(". "), text[-1]) == (1, ".")

    def test_it_gives_no_order_that_a_model_distrusts(self, name: str, kind: str, rung: int) -> None:
        assert not re.search(r"\bmust\b|override|do not mention", say(name, kind, rung), re.IGNORECASE)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_the_second_rung_is_shorter(name: str, kind: str) -> None:
    assert len(say(name, kind, 2)) < len(say(name, kind, 1))


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_the_third_rung_wraps_up(name: str, kind: str) -> None:
    assert "Wrap up" in say(name, kind, 3)


def test_no_output_of_a_tool_is_quoted(act: Callable[..., object], play: Callable[..., list[object]]) -> None:
    texts = [getattr(said, "intervention_text", None) for said in play([act("look", SECRET, q=1)] * 5)]
    assert any(texts)
    assert not any(SECRET in text for text in texts if text)


def test_a_text_that_comes_later_is_the_one_of_the_finding(
    act: Callable[..., object], play: Callable[..., list[object]]
) -> None:
    said = play([*[act("look", "0", q=1)] * 4, act("read_file", "text", path="a.py")])
    assert getattr(said[-1], "intervention_text", 1) == getattr(said[-2], "intervention_text", 2)
