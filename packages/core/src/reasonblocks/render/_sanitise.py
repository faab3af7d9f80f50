"""Guidance is data: what could pass for our frame, another role or the chat template is taken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._fold import folded, origins, visible
from ._markers import OPENING, ROLE_LINE, TOKEN

LONGEST = 8_192
"""Characters of a text that are looked at: the rest could not be shown anyway."""
MOST_PASSES = 8
"""A text in which frames are nested deeper than this was not written in good faith: nothing of it is shown."""


def sanitise(text: str) -> str:
    """Remove control, bidi and zero-width characters, frames, role markers, template tokens and tool syntax.

    The text is compared as a model may read it (look-alike letters, marks and entities folded); the rest is unchanged.
    This is repeated until nothing changes, so that a removal never joins two halves of a token.
    """
    plain = visible(text[:LONGEST].replace("\r\n", "\n").replace("\r", "\n"))
    for _ in range(MOST_PASSES):
        spans = _spans(folded(plain))
        if not spans:
            return plain.strip()
        plain = _without(plain, spans, origins(plain))
    return ""


def _spans(read: str) -> list[tuple[int, int]]:
    """Return the hostile spans of a folded text, in order; skip a search whose required characters are missing."""
    spans = [match.span() for match in TOKEN.finditer(read)] if any(char in read for char in OPENING) else []
    if ":" in read:  # the line break before a marker stays; the first line has none
        spans += [(match.start(1) - 1, match.end(1) - 1) for match in ROLE_LINE.finditer(f"\n{read}")]
    return sorted(spans)


def _without(text: str, spans: Iterable[tuple[int, int]], origin: Sequence[int]) -> str:
    kept, at = [], 0
    for start, end in spans:
        if origin[start] > at:
            kept.append(text[at : origin[start]])
        at = max(at, origin[end])
    return "".join((*kept, text[at:]))
