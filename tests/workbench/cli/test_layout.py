"""Foreign text is measured, wrapped and clipped for the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks_workbench.cli._lines import bar, cells, clip_rows, fit_width, rows

texts = st.text(st.sampled_from("ab \n\t\x1b[31m漢🛹e\u0301\u200b\r\u2028"), max_size=200)
widths = st.integers(2, 40)


@given(texts, widths)
def test_no_row_is_wider_than_asked_or_holds_what_a_terminal_obeys(text: str, width: int) -> None:
    assert [row for row in rows(text, width) if cells(row) > width or not row.isprintable()] == []


@given(st.text("ab 漢", max_size=200), widths)
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    assert "".join(rows(text, width)).replace(" ", "") == text.replace(" ", "")


@given(texts, widths, st.integers(1, 4), st.integers(0, 3))
def test_a_clipped_text_has_as_many_rows_as_asked_and_one_more(text: str, width: int, head: int, tail: int) -> None:
    found = clip_rows(text, width, head, tail)
    assert len(found) <= head + tail + 1
    assert all(cells(row) <= width or row.startswith("... ") for row in found)


@given(texts, st.integers(5, 40))
def test_a_fitted_text_is_one_line_that_fits(text: str, width: int) -> None:
    assert cells(fit_width(text, width)) <= width
    assert fit_width(text, width).isprintable()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abc", 3), ("漢字", 4), ("🛹", 2), ("e\u0301", 1), ("", 0)],
)
def test_wide_characters_take_two_columns_and_accents_none(text: str, expected: int) -> None:
    assert cells(text) == expected


def test_rows_break_at_blanks_and_keep_the_indent_of_code() -> None:
    assert list(rows("    return one\n\nand two", 10)) == ["    return", "one", "", "and two"]


def test_colours_of_a_tool_are_left_out_and_other_escapes_made_visible() -> None:
    assert list(rows("\x1b[1;31mred\x1b[0m \x1b[2Jcleared", 40)) == ["red \ufffd[2Jcleared"]


def test_a_clipped_text_counts_what_is_left_out() -> None:
    assert clip_rows("one\ntwo\n" + "x" * 50 + "\nlast", 10, 2, 1) == ["one", "two", "... 53 characters ...", "last"]


def test_a_text_with_one_row_too_many_is_whole() -> None:
    assert clip_rows("1\n2\n\n3\n4", 10, 2, 1) == ["1", "2", "3", "4"]


def test_a_bar_is_filled_up_to_its_share() -> None:
    assert [bar(share, 4, "#", ".") for share in (-1.0, 0.0, 0.5, 1.0, 7.0)] == ["....", "....", "##..", "####", "####"]
