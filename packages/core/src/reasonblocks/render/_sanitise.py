"""Guidance is data: what could pass for our frame, another role or the chat template is taken out."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 8_192
"""Characters of a text that are looked at: the rest could not be shown anyway."""
MOST_PASSES = 8
"""A text in which frames are nested deeper than this was not written in good faith: nothing of it is shown."""
_GAP = r"[^\S\n]*"
_SLASH = r"\s*(?:/\s*)?"
"""Gaps are never beside each other in one pattern: matching takes a time that grows with the text, not its square."""
_KEPT = frozenset("\n\t")
_INVISIBLE = frozenset("\u2028\u2029\u115f\u1160\u3164\uffa0\u034f\u2800\u17b4\u17b5").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
"""Separators, fillers and variation selectors: no category tells them from letters and marks."""


def _spaced(word: str, gap: str = _GAP) -> str:
    return gap.join(map(re.escape, word))


_ROLE_NAMES = ("system", "assistant", "developer", "user", "human", "tool", "function", "model", "ai")
_ROLES = "|".join(map(_spaced, _ROLE_NAMES))
_ANY = r"\s*"
_FRAME = rf"[\[［【(<{{]{_SLASH}{_spaced('reason', _ANY)}[\s_-]*{_spaced('blocks', _ANY)}\s*[\]］】)>}}]"
_TEMPLATE = (
    r"<\s*\|[^|<>\n]{0,60}\|\s*>"  # <|im_start|>, <|eot_id|>, < | x | >
    r"|<\s*｜[^｜<>\n]{0,60}｜\s*>"
    rf"|\[{_SLASH}(?:{_spaced('inst')}|{_spaced('sys')}|{_spaced('system')})\s*\]"
    rf"|<\s*<{_SLASH}{_spaced('sys')}\s*>\s*>"
    rf"|<{_SLASH}(?:s|bos|eos|start_of_turn|end_of_turn|system-reminder|instructions|tool_result|tool_use)"
    r"(?:\s[^<>\n]{0,100})?>"
    rf"|<{_SLASH}(?:{_ROLES})(?:_prompt|_message)?(?:\s[^<>\n]{{0,100}})?>"
)
_MARKED_ROLE = rf"[\[【]?(?:{_ROLES})[\]】]?{_GAP}(?:[*_]{{1,2}}{_GAP})?[:：](?:[*_]{{1,2}})?{_GAP}"
_ROLE_LINE = rf"^{_GAP}(?:(?:[#*_>+•\-]{{1,6}}|\d+\.){_GAP})?(?:{_MARKED_ROLE})+"
_HOSTILE = re.compile(f"(?i)(?:{_FRAME})|(?:{_TEMPLATE})")
_ROLE = re.compile(_ROLE_LINE, re.IGNORECASE | re.MULTILINE)


def sanitise(text: str) -> str:
    """The text without control, bidi and zero-width characters, frames, role markers and template tokens.

    Repeated until nothing changes: what was taken out never lets two halves of a token meet.
    """
    plain = "".join(filter(_visible, text[:LONGEST].replace("\r\n", "\n").replace("\r", "\n")))
    if not plain.isascii() and _is_hostile(folded := _folded(plain)):
        plain = folded
    for _ in range(MOST_PASSES):
        stripped = _ROLE.sub("", _HOSTILE.sub("", plain))
        if stripped == plain:
            return plain.strip()
        plain = stripped
    return ""


def _folded(text: str) -> str:
    """Full-width and other compatible forms as plain ones, marks taken off: what a model may read them as."""
    return "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Mn")


def _is_hostile(text: str) -> bool:
    return bool(_HOSTILE.search(text) or _ROLE.search(text))


def _visible(char: str) -> bool:
    """Not a control, format (bidi, zero-width, tags), surrogate or private-use character, nor an invisible filler."""
    if char.isascii():
        return char.isprintable() or char in _KEPT
    return unicodedata.category(char)[0] != "C" and char not in _INVISIBLE
