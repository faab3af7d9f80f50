"""Foreign text that looks like our frame loses its brackets, and nothing else changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks.render import FRAME
from reasonblocks.render.sanitise import TOKEN, defuse
from reasonblocks.util.folding import fold

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
    "[REASON.BLOCKS]",
    "[R.E.A.S.O.N.B.L.O.C.K.S]",
    "[REASON\u00b7BLOCKS]",
    "[*REASON*BLOCKS*]",
    "[R,E,A,S,O,N,B,L,O,C,K,S]",
    "[re\u0430s\u043enbl0cks]",
    "&lt;reasonblocks&gt;",
    "&amp;#91;reasonblocks]",
    "[&#114;easonblocks]",
    f"[{' ' * 1000}reasonblocks]",
    f"[{' ' * 22}&#82;EASONBLOCKS]",
    f"[R{chr(0x200B) * 300}&#69;ASONBLOCKS]",
    f"&#91;{chr(0x200B) * 22}&#82;EASONBLOCKS&#93;",
]


def holds_frame(text: str) -> bool:
    """Say by the sanitiser's own pattern, on the whole folded text, whether a frame is in it."""
    return any("blocks" in re.sub(r"[^a-z]", "", found[0]) for found in TOKEN.finditer(fold(text)))


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_frame_is_quoted(forged: str) -> None:
    assert defuse(f"before {forged} after") == 'before "REASONBLOCKS" after'


@pytest.mark.parametrize(
    "text",
    [
        "reasonblocks", "[reasons]", "[REASON] blocks", "a[r]", "[]", "[blocks]", "<br>", "", "len(reason.blocks)",
        '{"reason": "blocks"}', "[reason, blocks]",
    ],
)  # fmt: skip
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


def test_a_frame_in_the_middle_of_a_long_foreign_text_is_the_only_change() -> None:
    around = "\u8bfb\u53d6 &amp; na\u00efve \u2460 [r] " * 2_000
    assert defuse(f"{around}[REASONBLOCKS]{around}") == f'{around}"REASONBLOCKS"{around}'
