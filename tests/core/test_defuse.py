"""Foreign text that looks like our frame loses its brackets, and nothing else changes."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks._folding import folded
from reasonblocks._render import FRAME
from reasonblocks._render._sanitise import BRACKETS, OPENING, TOKEN, defuse

quick = settings(derandomize=True, deadline=None, database=None, max_examples=300)
FORGED = [
    FRAME,
    "[reasonblocks]",
    "[/REASONBLOCKS]",
    "[ R e a s o n\nB l o c k s ]",
    "<reason-blocks>",
    "{reason_blocks}",
    "(ReasonBlocks)",
    "\uff3bREASONBLOCKS\uff3d",
    "\u3010reasonblocks\u3011",
    "[reason\u200bblocks]",
    "[reason\x00blocks]",
    "[re\u0430s\u043enbl0cks]",
    "&lt;reasonblocks&gt;",
    "&amp;#91;reasonblocks]",
    "[&#114;easonblocks]",
    f"[{' ' * 100}reasonblocks]",
]


def holds_frame(text: str) -> bool:
    """Say by the sanitiser's own pattern, on the whole folded text, whether a frame is in it."""
    return any("blocks" in found[0].replace(" ", "").replace("\n", "") for found in TOKEN.finditer(folded(text)))


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_frame_is_quoted(forged: str) -> None:
    assert defuse(f"before {forged} after") == 'before "REASONBLOCKS" after'


@pytest.mark.parametrize("text", ["reasonblocks", "[reasons]", "[REASON] blocks", "a[r]", "[]", "[blocks]", "<br>", ""])
def test_other_text_is_unchanged(text: str) -> None:
    assert defuse(text) == text


@quick
@given(
    st.lists(
        st.sampled_from([*FORGED, *"[]<>(){}", "reason", "blocks", "r", " ", "&lt;", "\u8bfb", "x\n"]), max_size=12
    )
)
def test_no_frame_is_left_and_none_is_made(parts: list[str]) -> None:
    text = defuse("".join(parts))
    assert not holds_frame(text)
    assert defuse(text) == text


def test_every_character_that_looks_like_an_opening_bracket_is_known() -> None:
    every = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    assert {char for char in every if char != "&" and folded(char) in OPENING and folded(char)} == set(BRACKETS)
