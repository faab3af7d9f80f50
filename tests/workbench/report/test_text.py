"""Foreign text is made visible, clipped and shortened; numbers and times are short."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.types import ToolCall
from reasonblocks_workbench.report import text


def joined(parts: Iterable[text.Part]) -> str:
    """The text that these parts were made of."""
    return "".join(chr(int(part.text[2:], 16)) if part.hidden else part.text for part in parts)


def test_every_control_format_surrogate_and_private_character_is_hidden() -> None:
    invisible = {"Cc", "Cf", "Cs", "Co"}
    codes = (code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in invisible)
    missing = [f"U+{code:04X}" for code in codes if chr(code) not in "\t\n" and text.visible(chr(code)) == chr(code)]
    assert missing == []


@pytest.mark.parametrize(
    "shown", ["abc äöü ß ñ", "日本語 한국어 ไทย हिन्दी", "שלום", "مرحبا", "a\tb\nc", "😀 👍🏽 ✓", "e\u0301"]
)
def test_letters_of_all_scripts_are_shown_as_they_are(shown: str) -> None:
    assert text.visible(shown) == shown


@given(st.text())
def test_the_parts_of_a_text_are_the_whole_text(given: str) -> None:
    assert joined(text.parts(given)) == given.replace("\r\n", "\n")


@given(st.text(max_size=300), st.integers(4, 200))
def test_a_clipped_text_has_its_start_its_end_and_the_number_between(given: str, limit: int) -> None:
    cut = text.clip_text(given, limit)
    assert len(cut.start) + len(cut.end) + cut.left_out == len(given)
    assert len(cut.start) + len(cut.end) <= max(limit, len(given) - cut.left_out)
    assert given.startswith(cut.start)
    assert given.endswith(cut.end)
    assert (cut.left_out > 0) == (len(given) > limit)


@given(st.text(), st.integers(1, 50))
def test_a_preview_is_one_short_visible_line(given: str, limit: int) -> None:
    shown = text.preview(given, limit)
    assert len(shown) <= limit
    assert "\n" not in shown
    assert text.visible(shown) == shown


def test_a_preview_has_none_of_a_terminal_s_colours() -> None:
    assert text.preview("\x1b[31mFAILED\x1b[0m a\x1b[2Jb") == "FAILED aU+001B[2Jb"


def test_arguments_are_shown_by_their_names() -> None:
    assert text.call_preview(ToolCall(id="", name="t", arguments={"path": "a.py", "n": 3})) == "path=a.py n=3"
    assert text.call_preview(ToolCall(id="", name="t", arguments=["a", 1])) == '["a",1]'
    assert text.call_preview(ToolCall(id="", name="t")) == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (0.84, "0.8 s"), (42.4, "42 s"), (187, "3:07"), (7387, "2:03:07"), (359_999, "99:59:59")],
)
def test_durations_are_short(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize("timestamp", [1e300, -1e300, 1e18])
def test_a_time_that_no_calendar_has_is_missing(timestamp: float) -> None:
    assert text.moment(timestamp) == "–"


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_numbers_that_are_none_are_missing(value: float | None) -> None:
    assert text.number(value) == text.milliseconds(value) == "–"
