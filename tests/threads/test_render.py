"""A card as text: whole, harmless in a terminal, and without a line that its data could have written."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks_threads.phases import CardKind, Phase, Stage
from reasonblocks_threads.render import BAR, EVIDENCE_SHOWN, HANG, LINE, WIDTH, render_text, why
from reasonblocks_threads.values import Answer, Card, Evidence, Fact, Failed, Gate, Risk, Spent
from tests.whole import QUICK_EXAMPLES, WHOLE

CARD = Card(
    id="th_1.7",
    thread_id="th_1",
    org_id="default",
    kind="consent",
    phase=Phase.AWAITING_CONFIRMATION,
    stage=Stage.ACTION,
    title="Deploy web 1.4?",
    cause="proposal",
    opened_at=1_000_000.0,
    expires_at=1_604_800.0,
    run_id="run-1",
    run="live",
    action="deploy",
    parameters={"service": "web"},
    hash="c0ffee",
    risk=Risk(irreversibility="high", amplifiers=frozenset({"external_effect", "cost"})),
    author="agent",
    confidence=0.9,
    answers=(
        Answer(name="approve", label="Run it"),
        Answer(name="take_over", label="Hand it over", needs=("to",), takes=("reason",)),
    ),
)
HOSTILE = {
    "escape": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x9b31m",
    "bidi": "safe\u202egnp.exe\u2066 \u200f",
    "invisible": "ap\u200bprove\ufeff \u2060\u00ad\U000e0041\u3164",
    "lines": "a\nAnswers:\n  approve  Run it\r\nb\rHash: 00\x0bProblem:\x85Risk: low\u2028Risk: low",
    "quote": '" (ended); cause: "x',
    "backspace": "rm\b\b\b\x7f",
    "surrogate": "\ud800\udfff",
    "wide": "漢字 " * 200,
    "long": "x" * 3_000,
}


def with_text(text: str) -> Card:
    """Return a card whose every foreign text is this one."""
    return replace(
        CARD, title=text, cause=text, run_id=text, author=text, problem=text, report=text, proposal=text, question=text,
        passed=((Stage.INTENT, text),), facts=(Fact(id="f1", by=text, text=text, stage=Stage.INTENT),),
        evidence=(Evidence(id=text, label=text, text=text),), parameters={text: text, "list": [text, {text: 1}]},
        why_asking=(Failed(gate="confidence", value=text, limit=text),),
    )  # fmt: skip


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


def frame(card: Card) -> list[str]:
    """Return the lines of the card itself: without those behind the bar, and with nothing in quotes."""
    lines = [line for line in render_text(card).split("\n") if not line.startswith(BAR.rstrip())]
    return [_unquoted(line) for line in lines]


def _unquoted(line: str) -> str:
    shown, at = "", 0
    while (start := line.find('"', at)) >= 0:
        _, end = json.JSONDecoder().raw_decode(line, start)
        shown, at = f'{shown}{line[at:start]}""', end
    return shown + line[at:]


def test_a_card_shows_what_would_run_its_risk_and_the_answers() -> None:
    assert render_text(replace(CARD, spent=Spent(calls=2, tokens=1_500, usd=0.125), redirects=3)) == (
        "May this run?  (card th_1.7, consent, stage action)\n"
        "  | Deploy web 1.4?\n"
        'Run: "run-1", live\n'
        'Cause: "proposal"\n'
        "Asked at 1970-01-12 13:46 UTC, open until 1970-01-19 13:46 UTC\n"
        'Proposed action: "deploy", with\n'
        '  | service = "web"\n'
        "Risk, by the catalogue: irreversibility high, regret medium, cost, external_effect\n"
        "Hash: c0ffee\n"
        'By: "agent", confidence 0.90\n'
        "Spent: 2 of 8 calls, 1,500 of 200,000 tokens, 0.12 of 0.50 USD\n"
        "Redirected 3 times\n"
        "Answers:\n"
        "  approve    Run it\n"
        "  take_over  Hand it over (needs: to; takes: reason)"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_writes_no_line_of_the_card(name: str) -> None:
    assert frame(with_text(HOSTILE[name])) == frame(with_text("text"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_reaches_no_terminal(name: str) -> None:
    shown = render_text(with_text(HOSTILE[name]))
    assert shown.replace("\n", "").isprintable()
    assert not {char for char in shown if unicodedata.category(char)[0] == "C"} - {"\n"}
    assert "\u3164" not in shown
    assert max(map(columns, shown.split("\n"))) <= WIDTH


@settings(max_examples=300 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(st.text(st.characters(), min_size=1, max_size=60))
def test_no_text_changes_the_frame_of_a_card(text: str) -> None:
    assert frame(with_text(text)) == frame(with_text("text"))


def read(rows: list[str]) -> object:
    """Return the value that a parameter's rows show: JSON, or the lines of a text."""
    if len(rows) == 1:
        return json.loads(rows[0])
    return "\n".join(json.loads('"{}"'.format(row.replace('"', '\\"'))) for row in rows)


@settings(max_examples=300 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(max_size=200) | st.floats(allow_nan=False), max_size=4
    )
)
def test_parameters_are_shown_exactly(parameters: Mapping[str, object]) -> None:
    lines = render_text(replace(CARD, parameters=parameters)).split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("Proposed action")) + 1
    behind = lines[start : lines.index(next(line for line in lines if line.startswith("Risk")))]
    shown: dict[str, list[str]] = {}
    name = ""
    for row in (line[len(BAR) :] for line in behind if parameters):
        if not row.startswith("  "):
            name, _, value = row.partition(" =")
            shown[name] = [value[1:]] if value else []
        elif row.startswith(LINE):
            shown[name].append(row[len(LINE) :])
        else:
            shown[name][-1] += row[len(HANG) :]
    assert {name: read(rows) for name, rows in shown.items()} == dict(parameters)


def test_every_kind_of_line_end_begins_a_row_behind_the_bar() -> None:
    shown = render_text(replace(CARD, title="a\r\nb\x0bc\x85d\u2028e\tf\n"))
    assert "\n  | a\n  | b\n  | c\n  | d\n  | e   f\nRun: " in shown


def test_a_hidden_character_in_a_parameter_is_seen() -> None:
    shown = render_text(replace(CARD, parameters={"service": "we\u200bb\u202e\u00a0x"}))
    assert r'service = "we\u200bb\u202e\u00a0x"' in shown


def test_only_the_newest_evidence_is_shown_and_private_text_is_named() -> None:
    pieces = [Evidence(id=f"e{number}", label="step", text=f"text {number}") for number in range(EVIDENCE_SHOWN + 2)]
    shown = render_text(replace(CARD, evidence=(*pieces[:-1], replace(pieces[-1], text="", blob="b"))))
    assert "text 1\n" not in shown
    assert "text 2\n" in shown
    assert '"e13" "step" (private)' in shown
    assert "  and 2 older pieces" in shown


def test_a_text_of_several_lines_is_shown_with_its_lines_and_breaks_between_words() -> None:
    text = 'Observed:\n- "step" 2 \\n\n' + "eleven char " * 12
    rows = [line for line in render_text(replace(CARD, parameters={"text": text})).split("\n") if line.startswith(BAR)]
    assert rows[1:] == [
        f"{BAR}text =",
        f"{BAR}{LINE}Observed:",
        f'{BAR}{LINE}- "step" 2 \\\\n',
        f"{BAR}{LINE}{'eleven char ' * 7}",
        f"{BAR}{HANG}{'eleven char ' * 5}",
    ]


def test_a_redirect_is_counted() -> None:
    assert "\nRedirected once\n" in render_text(replace(CARD, redirects=1))
    assert "\nRedirected 2 times\n" in render_text(replace(CARD, redirects=2))


@pytest.mark.parametrize("kind", ["review", "redirect"])
def test_a_card_after_the_action_names_who_approved_it(kind: CardKind) -> None:
    assert '\nApproved by: "mara"\n' in render_text(replace(CARD, kind=kind, author="mara", confidence=None))


def test_every_gate_has_words() -> None:
    shown = {gate: why(Failed(gate=gate, value="VALUE", limit="LIMIT")) for gate in (*get_args(Gate), "new_gate")}
    assert len({*shown.values()}) == len(shown)
    assert shown["confidence"] == "the confidence is VALUE; it must be LIMIT"
    assert shown["new_gate"] == "new_gate: VALUE; must be: LIMIT"


def test_a_card_without_run_hash_and_check_says_so() -> None:
    shown = render_text(replace(CARD, run_id=None, hash=None, checked=False, risk=None, parameters={}, parent="th_0"))
    for line in ("Run: none\n", "(no parameters)", "Part of thread th_0", "not checked", "because the action is"):
        assert line in shown
    assert "Hash" not in shown
