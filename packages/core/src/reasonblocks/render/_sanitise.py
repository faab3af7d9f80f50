"""Guidance is data: what could pass for our frame, another role or the chat template is taken out."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 16_384
"""Characters of a text that are looked at: the rest could not be shown anyway."""
_GAP = r"[^\S\n]{0,3}"
_KEPT = frozenset("\n\t")
_INVISIBLE = frozenset("\u2028\u2029\u115f\u1160\u3164\uffa0\u034f" + "".join(map(chr, range(0xFE00, 0xFE10))))
"""Separators, fillers and variation selectors: no category tells them from letters and marks."""


def _spaced(word: str) -> str:
    return _GAP.join(map(re.escape, word))


_ROLE_NAMES = ("system", "assistant", "developer", "user", "human", "tool", "function", "model", "ai")
_ROLES = "|".join(map(_spaced, _ROLE_NAMES))
_FRAME = rf"[\[［【(<{{]{_GAP}/?{_GAP}{_spaced('reason')}[\s_-]{{0,3}}{_spaced('blocks')}{_GAP}[\]］】)>}}]"
_TEMPLATE = (
    r"<\s{0,3}\|[^|<>\n]{0,60}\|\s{0,3}>"  # <|im_start|>, <|eot_id|>, < |x| >
    r"|<\s{0,3}｜[^｜<>\n]{0,60}｜\s{0,3}>"
    rf"|\[{_GAP}/?{_GAP}(?:{_spaced('inst')}|{_spaced('sys')}|{_spaced('system')}){_GAP}\]"
    rf"|<<{_GAP}/?{_GAP}{_spaced('sys')}{_GAP}>>"
    r"|<\s{0,3}/?\s{0,3}(?:s|bos|eos|start_of_turn|end_of_turn|system-reminder|instructions|tool_result|tool_use)"
    r"\s{0,3}>"
    rf"|<\s{{0,3}}/?\s{{0,3}}(?:{_ROLES})(?:_prompt|_message)?\s{{0,3}}>"
)
_ROLE_LINE = rf"^[^\S\n]*[#*_>\-]{{0,6}}{_GAP}\[?(?:{_ROLES})\]?{_GAP}[*_]{{0,2}}{_GAP}[:：][*_]{{0,2}}"
_HOSTILE = re.compile(f"(?i)(?:{_FRAME})|(?:{_TEMPLATE})")
_ROLE = re.compile(_ROLE_LINE, re.IGNORECASE | re.MULTILINE)


def sanitise(text: str) -> str:
    """The text without control, bidi and zero-width characters, frames, role markers and template tokens.

    Repeated until nothing changes: what was taken out never lets two halves of a token meet.
    """
    plain = "".join(char for char in text[:LONGEST].replace("\r\n", "\n").replace("\r", "\n") if _visible(char))
    while True:
        stripped = _ROLE.sub("", _HOSTILE.sub("", plain))
        if stripped == plain:
            return plain.strip()
        plain = stripped


def _visible(char: str) -> bool:
    """Not a control, format (bidi, zero-width, tags), surrogate or private-use character, nor an invisible filler."""
    if char.isascii():
        return char.isprintable() or char in _KEPT
    return unicodedata.category(char)[0] != "C" and char not in _INVISIBLE
